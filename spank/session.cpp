// SPDX-License-Identifier: BSD-3-Clause
#include "spank/session.hpp"

#include <banyan/topo/placement.hpp>
#include <fmt/format.h>
#include <pwd.h>

#include "train/min_dp.hpp"
#include "train/plan_fields.hpp"

namespace banyan::spank {
namespace {

std::string address_at(const std::vector<std::string>& addresses, const std::vector<std::string>& names,
                       std::size_t i) {
    return i < addresses.size() ? addresses[i] : names[i];
}

}  // namespace

result<std::string> own_address(const train::plan& plan, const std::string& node) {
    for (std::size_t i = 0; i < plan.nodes.size(); ++i)
        if (plan.nodes[i] == node) return address_at(plan.addrs, plan.nodes, i);
    for (std::size_t i = 0; i < plan.spares.size(); ++i)
        if (plan.spares[i] == node) return address_at(plan.spare_addrs, plan.spares, i);
    return fail(errc::not_found, fmt::format("node {} is not in the job's plan", node));
}

result<ckpt::session_request> make_session(const train::plan& plan, const train::checkpoint_options& asked,
                                           uid_t uid, const std::string& node) {
    ckpt::session_request session;
    const auto* user = ::getpwuid(uid);
    if (!user) return fail(errc::not_found, fmt::format("uid {} is unknown on this node", uid));
    BANYAN_TRY(const auto shape, topo::parse_shape(plan.shape));
    BANYAN_TRY(const auto slots, train::slots_of(plan));
    BANYAN_TRY(const auto request, topo::make_request(shape, slots, plan.ranks_per_node, 0));
    session.job = plan.job;
    session.restart = plan.restart;
    session.uid = user->pw_uid;
    session.gid = user->pw_gid;
    session.self = node;
    session.world = static_cast<std::uint32_t>(plan.nodes.size()) * plan.ranks_per_node;
    session.dir = asked.directory;
    session.every = asked.every;
    session.flush = asked.flush;
    session.milestone = asked.milestone;
    session.bytes = asked.bytes;
    const auto ranks = topo::ranks_of_slots(request);
    const auto buddies = ckpt::buddies_of_first(plan.buddies, static_cast<std::uint32_t>(plan.nodes.size()));
    for (std::size_t i = 0; i < plan.nodes.size(); ++i)
        session.nodes.push_back({plan.nodes[i], address_at(plan.addrs, plan.nodes, i), ranks[i], buddies[i]});
    if (plan.min_nodes != 0) {
        session.min_nodes = plan.min_nodes;
        session.group = train::ranks_of_group(shape);
        for (std::size_t i = 0; i < slots; ++i) session.slots.push_back({ranks[i], plan.buddies[i]});
    }
    for (std::size_t i = 0; i < plan.spares.size(); ++i)
        session.spares.push_back({plan.spares[i], address_at(plan.spare_addrs, plan.spares, i)});
    for (std::size_t i = 0; i < plan.former.size(); ++i)
        session.former.push_back({plan.former[i], address_at(plan.former_addrs, plan.former, i)});
    return session;
}

}  // namespace banyan::spank
