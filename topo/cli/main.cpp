// SPDX-License-Identifier: BSD-3-Clause
#include <system_error>

#include <fmt/format.h>

#include "common/cli_words.hpp"
#include "common/text.hpp"
#include "topo/cli/cli.hpp"
#include "topo/cli/output.hpp"

namespace banyan::topo::cli {
namespace {

int tell(const error& e) {
    // Names of nodes and files stand in it.
    fmt::print(stderr, "banyan-topo: {}\n", printable(e.text()));
    return unusable;
}

/// fmt throws where standard output is full or closed.
result<int> run(const action& chosen) {
    try {
        return chosen();
    } catch (const std::system_error& e) {
        return fail(errc::unavailable, fmt::format("cannot write to standard output: {}", e.what()),
                    "what was printed is not whole");
    }
}

}  // namespace
}  // namespace banyan::topo::cli

int main(int argc, char** argv) {
    using namespace banyan::topo::cli;
    CLI::App app("Reads a fabric as the tools print it, shows it, and places jobs on it.");
    banyan::usual_words(app, "banyan-topo");
    app.require_subcommand(1);
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
        "A FABRIC is the output of ibnetdiscover, iblinkinfo or ibdiagnet (.db_csv, .lst), Slurm's\n"
        "topology.conf or topology.yaml, or a snapshot of one; - is standard input.\n"
        "Exit codes: 0 fine, 1 defects or differences, 2 unusable input.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        if (app.exit(e) != 0) return unusable;
        const auto told = finish_stdout();
        return told ? fine : tell(told.error());
    }
    const auto done = run(chosen);
    const auto told = finish_stdout();
    if (!done) return tell(done.error());
    return told ? *done : tell(told.error());
}
