// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "common/build_info.hpp"
#include "topo/cli/cli.hpp"

int main(int argc, char** argv) {
    using namespace banyan::topo::cli;
    CLI::App app("Reads an InfiniBand fabric as ibnetdiscover prints it, shows it, and places jobs on it.");
    app.name("banyan-topo");
    app.require_subcommand(1);
    app.set_version_flag("--version", banyan::version_line("banyan-topo"));
    action chosen;
    add_show(app, chosen);
    add_check(app, chosen);
    add_diff(app, chosen);
    add_draw(app, chosen);
    add_place(app, chosen);
    add_explain(app, chosen);
    add_snapshot(app, chosen);
    add_discover(app, chosen);
    add_slurm(app, chosen);
    add_nccl(app, chosen);
    add_gen(app, chosen);
    app.footer(
        "A FABRIC is the output of ibnetdiscover, or a snapshot of it; - is standard input.\n"
        "Exit codes: 0 fine, 1 defects or differences, 2 unusable input.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? fine : unusable;
    }
    const auto done = chosen();
    if (done) return *done;
    fmt::print(stderr, "banyan-topo: {}\n", done.error().text());
    return unusable;
}
