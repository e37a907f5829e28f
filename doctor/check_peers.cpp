// SPDX-License-Identifier: BSD-3-Clause
//
// What this host can reach of the others. Each host sees its own direction: the controller's agents show the
// other one.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "doctor/reach.hpp"
#include "doctor/site.hpp"

namespace banyan::doctor {
namespace {

constexpr auto connect_timeout = std::chrono::seconds(2);
constexpr std::size_t neighbours = 8;  // that a compute node tries; the controller tries all

/// Nodes after ours in the order of slurm.conf, so that every node is tried by some other.
std::vector<slurm_node> peers_of(const site& s) {
    auto all = expected(*s.slurm.nodes);
    const auto self =
        std::find_if(all.begin(), all.end(), [&](const slurm_node& n) { return n.name == s.node; });
    std::vector<slurm_node> out;
    if (s.is.controller) {
        return all;
    } else if (self != all.end()) {
        const auto at = static_cast<std::size_t>(self - all.begin());
        for (std::size_t i = 1; i < all.size() && out.size() < neighbours; ++i)
            out.push_back(all[(at + i) % all.size()]);
    }
    return out;
}

void judge_nodes(const std::vector<target>& targets, const std::vector<reach>& answers, findings& out) {
    std::vector<std::string> of[reach_kinds];
    for (std::size_t i = 0; i < targets.size(); ++i)
        of[static_cast<std::size_t>(answers[i])].push_back(targets[i].name);
    const auto& open = of[static_cast<std::size_t>(reach::open)];
    const auto& closed = of[static_cast<std::size_t>(reach::closed)];
    const auto& silent = of[static_cast<std::size_t>(reach::silent)];
    const auto& unresolved = of[static_cast<std::size_t>(reach::unresolved)];
    const auto port = targets.front().port;
    const auto subject = fmt::format("port {} (banyan-ckptd)", port);
    if (!open.empty()) out.push_back(fine(subject, "answers on " + some(open)));
    if (!closed.empty())
        out.push_back({verdict::note, subject, "nobody listens on " + some(closed),
                       "where no service runs it, a job's prolog starts it",
                       "systemctl enable --now banyan-ckptd@$(hostname -s) on the nodes"});
    if (!silent.empty())
        out.push_back(
            {verdict::wrong, subject, "no answer from " + some(silent),
             "shards do not get to a buddy node, and a lost node's state is gone",
             fmt::format("look whether the nodes are up, and open TCP {} between all nodes in the firewall",
                         port)});
    if (!unresolved.empty())
        out.push_back({verdict::wrong, subject, "no address for " + some(unresolved),
                       "shards do not get to a buddy node, and a lost node's state is gone",
                       "the NodeAddr of slurm.conf has to resolve on every node: /etc/hosts or DNS"});
    if (const auto& untried = of[static_cast<std::size_t>(reach::untried)]; !untried.empty())
        out.push_back({verdict::unknown, subject,
                       fmt::format("no time was left for {} of {} nodes: {}", untried.size(), targets.size(),
                                   some(untried)),
                       "whether they can be reached is not known",
                       "fix the others first; names that no server answers for take longest"});
}

/// What a host calls itself, which is [fault] controller where nobody has set it.
bool is_loopback(const std::string& name) {
    return name == "localhost" || name == "::1" || name.starts_with("127.");
}

std::string controller_to_name(const site& s) {
    const auto slurms = s.slurm.config ? controllers(*s.slurm.config) : std::vector<std::string>{};
    return fmt::format(
        "[fault] controller = \"HOST\" in banyan.conf, on every node; HOST runs banyan-faultd-controller{}",
        slurms.empty() ? "" : ", usually slurmctld's: " + slurms.front());
}

finding judge_controller(const site& s) {
    const target to{s.fault->controller, s.fault->controller, s.fault->port};
    const auto subject = fmt::format("port {} of {} (banyan-faultd controller)", to.port, to.name);
    const char* const why = "this node's faults are not heard";
    switch (try_ports({to}, connect_timeout).front()) {
        case reach::open:
            return fine(subject, "answers");
        case reach::closed:
            if (is_loopback(to.name) && !s.is.controller)
                return {verdict::wrong, subject, "nobody listens, and this host is not the controller's", why,
                        controller_to_name(s)};
            return {verdict::wrong, subject, "nobody listens", why,
                    "systemctl enable --now banyan-faultd-controller there; [fault] bind on it"};
        case reach::silent:
            return {verdict::wrong, subject, "no answer", why,
                    fmt::format("open TCP {} from the nodes to it in the firewall", to.port)};
        case reach::unresolved:
        case reach::untried:
            break;
    }
    return {verdict::wrong, subject, "the name has no address", why,
            "[fault] controller in banyan.conf, or /etc/hosts"};
}

}  // namespace

findings check_ports(const site& s) {
    if (!s.fault || !s.ckptd || (!s.is.compute && !s.is.controller)) return {};
    findings out;
    if (s.is.compute) out.push_back(judge_controller(s));
    if (!s.slurm.nodes) {
        out.push_back({verdict::unknown, "ports of the nodes", s.slurm.nodes.error().text(),
                       "which nodes there are is not known", "scontrol show node"});
        return out;
    }
    std::vector<target> targets;
    for (const auto& node : peers_of(s))
        targets.push_back({node.name, node.address.empty() ? node.name : node.address, s.ckptd->port});
    const auto gone = s.slurm.nodes->size() - expected(*s.slurm.nodes).size();
    if (s.is.controller && gone > 0)
        out.push_back({verdict::note, "nodes",
                       fmt::format("{} of {} are down, powered off or silent to Slurm, and not tried", gone,
                                   s.slurm.nodes->size()),
                       "what Slurm knows is not told again", "sinfo -R"});
    if (!targets.empty()) judge_nodes(targets, try_ports(targets, connect_timeout), out);
    return out;
}

}  // namespace banyan::doctor
