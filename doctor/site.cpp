// SPDX-License-Identifier: BSD-3-Clause
#include "doctor/site.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "common/config.hpp"
#include "common/file.hpp"
#include "doctor/processes.hpp"

namespace banyan::doctor {
namespace {

bool runs_here(const std::string& name) {
    const auto found = processes_called(name);
    return found && !found->empty();
}

std::string short_name(const std::string& host) { return host.substr(0, host.find('.')); }

roles find_roles(const site& s, const std::string& host) {
    roles out;
    if (s.slurm.config)
        for (const auto& name : controllers(*s.slurm.config))
            out.controller = out.controller || short_name(name) == host;
    if (s.slurm.nodes)
        out.compute = std::any_of(s.slurm.nodes->begin(), s.slurm.nodes->end(),
                                  [&](const slurm_node& n) { return n.name == s.node; });
    out.fabric = runs_here("opensm");
    if (!s.slurm.config) {  // nobody says what this host is: what runs on it does
        out.controller = runs_here("slurmctld");
        out.compute = runs_here("slurmd");
    }
    out.login = !out.controller && !out.compute && !out.fabric;
    return out;
}

roles named(const std::vector<std::string>& words) {
    const auto has = [&](const char* word) {
        return std::find(words.begin(), words.end(), word) != words.end();
    };
    return {has("controller"), has("compute"), has("fabric"), has("login")};
}

std::string node_of(const result<std::vector<slurm_node>>& nodes, const std::string& host) {
    if (nodes)
        for (const auto& n : *nodes)
            if (short_name(n.host) == host) return n.name;
    return host;
}

/// What slurmctld reads of [topo], as strictly as it does.
result<std::chrono::milliseconds> snapshot_age_limit(const std::filesystem::path& path) {
    BANYAN_TRY(const auto file, config_file::load(path));
    const auto section = file.section("topo");
    BANYAN_CHECK(section.check());
    std::chrono::milliseconds limit{};
    section.field("max_age", limit);
    return limit;
}

/// The shell that we run in may not know where slurm.conf is, while the daemons of this host do: then we go
/// by theirs. Returns it.
std::string adopt_slurm_conf() {
    const char* set = std::getenv("SLURM_CONF");
    if (set && *set) return {};
    const auto theirs = conf_of_daemons();
    // Anybody can call a process slurmctld: only a file that root alone writes is gone by.
    if (!theirs || *theirs == "/etc/slurm/slurm.conf" || !check_trusted(*theirs)) return {};
    ::setenv("SLURM_CONF", theirs->c_str(), 1);
    return *theirs;
}

}  // namespace

std::vector<std::string> roles::names() const {
    std::vector<std::string> out;
    if (controller) out.emplace_back("controller");
    if (compute) out.emplace_back("compute");
    if (fabric) out.emplace_back("fabric");
    if (login) out.emplace_back("login");
    return out;
}

site look(const site_options& asked) {
    const auto host = ckpt::short_host_name();
    const auto unset = adopt_slurm_conf();
    auto slurm = ask_slurm();
    slurm.unset_conf = unset;
    const auto node = asked.node.empty() ? node_of(slurm.nodes, host) : asked.node;
    site out{node,
             {},
             asked.config,
             fault::load_config(asked.config, node),
             ckpt::load_settings(asked.config, node),
             snapshot_age_limit(asked.config),
             std::move(slurm)};
    out.is = asked.roles.empty() ? find_roles(out, host) : named(asked.roles);
    return out;
}

}  // namespace banyan::doctor
