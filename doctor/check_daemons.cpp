// SPDX-License-Identifier: BSD-3-Clause
//
// The fault daemon: which nodes its controller hears, by which names, and whether it can reach Slurm.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/command.hpp"
#include "common/json_fields.hpp"
#include "doctor/processes.hpp"
#include "doctor/site.hpp"
#include "doctor/slurm_conf.hpp"

namespace banyan::doctor {
namespace {

constexpr auto command_timeout = std::chrono::seconds(10);
constexpr const char* defaults_of_faultd = "/etc/default/banyan-faultd";

/// Without it no node is drained and no job is told of.
void judge_slurm_of_faultd(const site& s, findings& out) {
    const auto running = root_processes_called("banyan-faultd");
    if (!running) return;
    for (const auto& daemon : *running) {
        if (std::ranges::find(daemon.words, "controller") == daemon.words.end() || !daemon.environment)
            continue;
        const auto set = variable_in(daemon, "SLURM_CONF");
        // Where nobody needs SLURM_CONF Slurm was built with its place, which libslurm knows, and we do not.
        if (set.empty() && s.slurm.unset_conf.empty() && !std::getenv("SLURM_CONF")) continue;
        const std::filesystem::path conf = set.empty() ? "/etc/slurm/slurm.conf" : set;
        std::error_code ignored;
        if (std::filesystem::exists(conf, ignored)) continue;
        const auto right = find_slurm_conf();
        out.push_back({verdict::wrong, "banyan-faultd controller",
                       fmt::format("cannot reach Slurm: there is no {}", conf.string()),
                       "it can neither see jobs nor take a node out",
                       fmt::format("SLURM_CONF={} in {}, then systemctl restart banyan-faultd-controller",
                                   right ? right->string() : "FILE", defaults_of_faultd)});
    }
}

/// An agent that does not know its node's name calls itself by the short name of the host. Several agents are
/// those of nodes that have one host, and host names that are not to be seen from here.
void judge_name_of_agent(const site& s, findings& out) {
    const auto host = ckpt::short_host_name();
    auto running = root_processes_called("banyan-faultd");
    if (!running || s.node == host) return;
    const auto has = [](const process& daemon, const std::string& word) {
        return std::ranges::find(daemon.words, word) != daemon.words.end();
    };
    std::erase_if(*running, [&](const process& daemon) { return !has(daemon, "agent"); });
    if (running->size() > 1) return;
    for (const auto& daemon : *running) {
        if (has(daemon, s.node) || has(daemon, "--node=" + s.node)) continue;
        out.push_back({verdict::wrong, "banyan-faultd agent",
                       fmt::format("calls itself {}, and slurm.conf has the node as {}", host, s.node),
                       "an incident would name a node that Slurm does not have",
                       fmt::format("OPTIONS=\"--node {}\" in {}, then systemctl restart banyan-faultd-agent",
                                   s.node, defaults_of_faultd)});
    }
}

/// Nodes that the controller does not hear by the name that slurm.conf has for them.
finding judge_missing(const std::vector<std::string>& heard, const std::vector<slurm_node>& up,
                      const std::vector<std::string>& missing, std::string what) {
    const char* const why = "faults are not seen on the nodes that it does not hear";
    std::vector<std::string> called_else;
    for (const auto& node : missing)
        if (std::ranges::binary_search(heard, node.substr(0, node.find('.'))) &&
            std::ranges::find(up, node.substr(0, node.find('.')), &slurm_node::name) == up.end())
            called_else.push_back(node);
    what += "; it does not hear " + some(missing);
    if (called_else.empty())
        return {verdict::wrong, "agents", what, why,
                "systemctl enable --now banyan-faultd-agent there, then banyan-doctor there"};
    return {verdict::wrong, "agents",
            fmt::format("{}; the agent of {} calls itself {}", what, called_else.front(),
                        called_else.front().substr(0, called_else.front().find('.'))),
            "an incident would name a node that Slurm does not have",
            fmt::format("OPTIONS=\"--node NAME\" in {} there, NAME as in slurm.conf, then systemctl restart "
                        "banyan-faultd-agent",
                        defaults_of_faultd)};
}

finding judge_agents(const site& s) {
    const char* const why = "faults are not seen on the nodes that it does not hear";
    std::vector<std::string> words = {"banyan-fault", "agents", "--json"};
    if (!s.config_path.empty()) words.insert(words.end(), {"--config", s.config_path.string()});
    const auto text = run_command(words, command_timeout);
    if (!text)
        return {verdict::wrong, "banyan-faultd controller", text.error().text(), "no fault is seen",
                "systemctl enable --now banyan-faultd-controller"};
    const auto answer = nlohmann::json::parse(*text, nullptr, false);
    // The command prints the list alone.
    const nlohmann::json whole = answer.is_object() ? answer : nlohmann::json{{"agents", answer}};
    const auto agents = json_fields(whole).list("agents");
    if (!agents)
        return {verdict::unknown, "banyan-faultd controller", "its answer is no list of agents", why,
                "banyan-fault agents"};
    std::vector<std::string> heard, missing;
    for (const auto& agent : *agents)
        if (agent.flag("connected").value_or(false)) heard.push_back(agent.text("node").value_or(""));
    if (!s.slurm.nodes)
        return {verdict::unknown, "agents", fmt::format("{} are heard", heard.size()),
                "how many nodes there are is not known", "scontrol show node"};
    std::sort(heard.begin(), heard.end());
    const auto up = expected(*s.slurm.nodes);
    for (const auto& node : up)
        if (!std::binary_search(heard.begin(), heard.end(), node.name)) missing.push_back(node.name);
    const auto what = fmt::format("the controller hears {} of {} nodes{}", up.size() - missing.size(),
                                  up.size(), up.size() == s.slurm.nodes->size() ? "" : " that are up");
    if (missing.empty()) return fine("agents", what);
    return judge_missing(heard, up, missing, what);
}

}  // namespace

findings check_daemons(const site& s) {
    findings out;
    if (s.is.compute) judge_name_of_agent(s, out);
    if (!s.is.controller || !s.fault) return out;
    judge_slurm_of_faultd(s, out);
    out.push_back(judge_agents(s));
    return out;
}

}  // namespace banyan::doctor
