// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-faultd: `agent` on every node, `controller` once per cluster. This file reads the command line;
// run.cpp runs.
#include <cstdio>

#include <CLI/CLI.hpp>

#include "common/config.hpp"
#include "common/log.hpp"
#include "fault/run.hpp"

int main(int argc, char** argv) {
    CLI::App app{"banyan-faultd: turns kernel log lines and fabric changes into incidents, and acts on them"};
    std::string config_path = banyan::default_config_path().string(), node, log, level = "info";
    bool check = false, dump = false;
    app.require_subcommand(1);
    app.fallthrough();
    app.add_option("--config", config_path,
                   "banyan.conf (default: $BANYAN_CONF, else /etc/banyan/banyan.conf)");
    app.add_option("--node", node, "this node's name (default: the short host name)");
    app.add_option("--log", log, "log to this file instead of standard error");
    app.add_option("--log-level", level, "trace, debug, info, warn, error or off");
    app.add_flag("--check-config", check, "read the configuration, say whether it is right, and end");
    app.add_flag("--dump-config", dump, "print the configuration in force, and end");
    const auto* agent = app.add_subcommand("agent", "reads this node's kernel log");
    app.add_subcommand("controller", "judges and acts, once per cluster");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? 0 : 2;
    }

    auto settings = banyan::fault::load_config(config_path, node);
    if (!settings) {
        std::fprintf(stderr, "banyan-faultd: %s\n", settings.error().text().c_str());
        return 2;
    }
    if (dump) std::fputs(settings->dump().c_str(), stdout);
    if (check && !dump) std::puts("the configuration is right");
    if (check || dump) return 0;
    if (const auto ok = banyan::setup_log("banyan-faultd", log, level); !ok) {
        std::fprintf(stderr, "banyan-faultd: %s\n", ok.error().text().c_str());
        return 2;
    }
    return agent->parsed() ? banyan::fault::run_agent(std::move(*settings))
                           : banyan::fault::run_controller(std::move(*settings));
}
