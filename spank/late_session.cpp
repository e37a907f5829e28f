// SPDX-License-Identifier: BSD-3-Clause
#include "spank/late_session.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "common/child.hpp"
#include "common/text.hpp"
#include "spank/job_facts.hpp"
#include "spank/session.hpp"
#include "spank/spank_slurm.hpp"
#include "train/plan_fields.hpp"

namespace banyan::spank {
namespace {

constexpr auto late_timeout = std::chrono::seconds(15);

/// Each node's address: Slurm's NodeAddr.
result<std::map<std::string, std::string>> addresses() {
    node_info_msg_t* answer = nullptr;
    if (slurm_load_node(0, &answer, SHOW_ALL) != SLURM_SUCCESS)
        return fail(errc::unavailable,
                    fmt::format("cannot read the nodes' addresses: {}", slurm_strerror(errno)));
    const std::unique_ptr<node_info_msg_t, void (*)(node_info_msg_t*)> owner(answer,
                                                                             slurm_free_node_info_msg);
    std::map<std::string, std::string> known;
    for (std::uint32_t i = 0; i < answer->record_count; ++i) {
        const auto& node = answer->node_array[i];
        if (node.name && node.node_addr) known.emplace(node.name, node.node_addr);
    }
    return known;
}

/// A node that Slurm does not tell is reached by its name.
std::vector<std::string> addresses_of(const std::vector<std::string>& names,
                                      const std::map<std::string, std::string>& known) {
    auto out = names;
    for (auto& name : out)
        if (const auto at = known.find(name); at != known.end()) name = at->second;
    return out;
}

result<train::plan> plan_of(const train::plan_summary& told, const std::vector<std::string>& nodes,
                            const std::vector<std::string>& allocated) {
    if (!train::check_ranks(told, nodes.size()))
        return fail(errc::invalid_input, fmt::format("the step has {} nodes, and the plan of job {} has {}",
                                                     nodes.size(), told.job, told.nodes));
    if (told.buddies.empty())
        return fail(
            errc::exhausted,
            fmt::format(
                "slurmctld did not tell a step the buddies of job {}'s plan: it is too long, or of an "
                "older slurmctld",
                told.job));
    train::plan out;
    static_cast<train::plan_head&>(out) = told;
    out.nodes = nodes;
    out.buddies = told.buddies;
    for (const auto& node : nodes)
        if (std::find(allocated.begin(), allocated.end(), node) == allocated.end())
            return fail(errc::denied,
                        fmt::format("the step names {}, which is not job {}'s", node, told.job));
    for (const auto& node : allocated)
        if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) out.spares.push_back(node);
    BANYAN_TRY(const auto known, addresses());
    out.addrs = addresses_of(out.nodes, known);
    out.spare_addrs = addresses_of(out.spares, known);
    return out;
}

result<std::uint32_t> open_now(const settings& s, const daemon_paths& paths, std::uint32_t job,
                               const std::vector<std::string>& nodes, const train::options& asked,
                               const std::string& checkpoint) {
    BANYAN_TRY(const auto options, train::parse_checkpoint(checkpoint));
    BANYAN_TRY(auto facts, read_job(job, 0));
    add_plan_without_select(facts, asked, nodes);
    if (!facts.plan) return std::unexpected(facts.plan.error());
    const auto* told = facts.known_plan();
    if (!told) return fail(errc::not_found, fmt::format("job {} has no plan of its ranks", job));
    BANYAN_TRY(const auto plan, plan_of(*told, nodes, facts.running.nodes));
    BANYAN_TRY(const auto session, make_session(plan, options, facts.uid, paths.node));
    BANYAN_TRY(const auto address, own_address(plan, paths.node));
    BANYAN_TRY([[maybe_unused]] const auto answer, open_at_daemon(s, paths, address, session, late_timeout));
    return plan.restart;
}

}  // namespace

result<std::uint32_t> open_late_session(const settings& s, const daemon_paths& paths, std::uint32_t job,
                                        const std::vector<std::string>& nodes, const train::options& asked,
                                        const std::string& checkpoint) {
    const auto ask = [&] {
        const auto restart = open_now(s, paths, job, nodes, asked, checkpoint);
        return restart ? std::to_string(*restart) : restart.error().text();
    };
    BANYAN_TRY(const auto said, ask_forked(ask, clock::now() + late_timeout));
    const auto restart = parse_number(said, UINT32_MAX);
    if (!restart) return fail(errc::unavailable, said);
    return static_cast<std::uint32_t>(*restart);
}

}  // namespace banyan::spank
