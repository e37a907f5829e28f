// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-doctor: is banyan well on this host? Says what is wrong, why it matters, and the line that fixes it.
//
// Exit codes: 0 nothing is wrong; 1 something is wrong or could not be looked at; 2 wrong use.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/cli_words.hpp"
#include "common/config.hpp"
#include "doctor/site.hpp"

namespace {

using namespace banyan::doctor;

findings check_all(const site& s) {
    findings out;
    for (const auto check :
         {check_configuration, check_munge, check_slurm, check_plugins, check_snapshot, check_opensm,
          check_directories, check_memory, check_gpus, check_ports, check_daemons}) {
        auto found = check(s);
        out.insert(out.end(), found.begin(), found.end());
    }
    return out;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "Checks banyan and what it needs of this host: says what is wrong, why it matters and what fixes "
        "it.");
    banyan::usual_words(app, "banyan-doctor");
    site_options asked{banyan::default_config_path().string(), {}, {}};
    bool json = false, quiet = false;
    app.add_option("--config", asked.config,
                   "banyan.conf (default: $BANYAN_CONF, else /etc/banyan/banyan.conf)");
    app.add_option("--node", asked.node,
                   "the host's name in slurm.conf, where it cannot be found by its host name");
    app.add_option("--role", asked.roles,
                   "what the host is for, instead of what is found out (may be repeated)")
        ->check(CLI::IsMember({"controller", "compute", "fabric", "login"}));
    app.add_flag("--json", json, "everything, as one JSON object");
    app.add_flag("--quiet", quiet, "only what is wrong, and nothing where nothing is: for cron");
    app.footer(
        "Exit codes: 0 nothing is wrong, 1 something is wrong or could not be looked at, 2 wrong use.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? 0 : 2;
    }
    const auto here = look(asked);
    const auto found = check_all(here);
    const auto names = here.is.names();
    const auto title = fmt::format("{} ({})", here.node, fmt::join(names, ", "));
    fmt::print("{}", json ? as_json(found, here.node, names) + "\n" : as_text(found, title, !quiet));
    return exit_code(found);
}
