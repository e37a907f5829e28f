// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-faultd: `agent` on every node, `controller` once per cluster. This file reads the command line;
// daemon.cpp runs.
#include <cstdio>

#include <CLI/CLI.hpp>

#include "common/build_info.hpp"
#include "common/clock.hpp"
#include "common/config.hpp"
#include "common/hangup.hpp"
#include "common/log.hpp"
#include "common/log_file.hpp"
#include "fault/daemon.hpp"
#include "fault/look_main.hpp"
#include "fault/policy/policy_file.hpp"

int main(int argc, char** argv) {
    banyan::ignore_hangup();
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
    auto* agent = app.add_subcommand("agent", "reads this node's kernel log");
    bool sandboxed = false;
    agent->add_flag("--sandboxed", sandboxed,
                    "systemd keeps this process in a sandbox: banyan-sweep is run outside, by systemd-run");
    app.add_subcommand("controller", "judges and acts, once per cluster");
    auto* look = app.add_subcommand("look", "prints what the agent sees of this node's hardware, as JSON");
    std::string what, root = "/";
    std::vector<std::string> names;
    look->add_option("--root", root, "where sys/ is (default: /)");
    look->add_option("WHAT", what,
                     "hcas: error counters of their ports; hca-events: what the HCAs tell; gpus: how "
                     "NVIDIA's library says they are; pci: which of them share a PCIe switch")
        ->required();
    look->add_option(
        "NAME", names,
        "hcas: the counters, as their files in /sys are called; hca-events and gpus: the library");
    app.set_version_flag("-V,--version", banyan::version_line("banyan-faultd"));
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) return app.exit(e);
        banyan::say_fatal("banyan-faultd", banyan::log_option(argc, argv),
                          std::string(e.what()) + "; run banyan-faultd --help");
        return 2;
    }

    if (const auto followed = banyan::clock::follow_environment(); !followed) {
        banyan::say_fatal("banyan-faultd", log, followed.error().text());
        return 2;
    }
    if (look->parsed()) return banyan::fault::print_look(what, root, names);

    auto settings = banyan::fault::load_config(config_path, node);
    // Agents judge nothing, and need not have the file.
    auto rules = banyan::fault::load_policy(settings && !agent->parsed() ? settings->policy : std::string());
    for (const auto* wrong : {settings ? nullptr : &settings.error(), rules ? nullptr : &rules.error()})
        if (wrong) {
            banyan::say_fatal("banyan-faultd", check || dump ? "" : log, wrong->text());
            return 2;
        }
    settings->sandboxed = sandboxed;
    if (dump) std::fputs(settings->dump().c_str(), stdout);
    if (check) {
        const auto notes = banyan::check_config(config_path);
        if (!notes) {
            banyan::say_fatal("banyan-faultd", "", notes.error().text());
            return 2;
        }
        if (!dump)
            for (const auto& note : *notes) std::puts(note.c_str());
        if (!dump) std::puts("the configuration is right");
    }
    if (check || dump) return 0;
    if (const auto ok = banyan::setup_log("banyan-faultd", log, level); !ok) {
        banyan::say_fatal("banyan-faultd", "", ok.error().text());
        return 2;
    }
    return agent->parsed() ? banyan::fault::run_agent(std::move(*settings))
                           : banyan::fault::run_controller(std::move(*settings), std::move(*rules));
}
