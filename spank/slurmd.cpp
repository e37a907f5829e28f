// SPDX-License-Identifier: BSD-3-Clause
//
// In the job's prolog and epilog, as root on every node of the allocation: the checkpoint daemon runs and has
// the session's memory before the first task starts; after the job the session waits out its lease. A prolog
// that fails drains the node, so these report and succeed.
#include <algorithm>

#include <banyan/topo/placement.hpp>
#include <fmt/format.h>
#include <pwd.h>

#include "ckptd/protocol/protocol.hpp"
#include "spank/job_plan.hpp"
#include "spank/note.hpp"
#include "spank/plugin.hpp"
#include "train/plan.hpp"

namespace banyan::spank {
namespace {

constexpr auto open_timeout =
    std::chrono::seconds(30);  // the daemon may have to make gigabytes of memory ready
constexpr auto detach_timeout = std::chrono::seconds(2);

std::string address_at(const std::vector<std::string>& addresses, const std::vector<std::string>& names,
                       std::size_t i) {
    return i < addresses.size() ? addresses[i] : names[i];
}

/// This node's own address in the plan; empty when the plan does not name it.
std::string own_address(const train::plan& plan, const std::string& node) {
    for (std::size_t i = 0; i < plan.nodes.size(); ++i)
        if (plan.nodes[i] == node) return address_at(plan.addrs, plan.nodes, i);
    for (std::size_t i = 0; i < plan.spares.size(); ++i)
        if (plan.spares[i] == node) return address_at(plan.spare_addrs, plan.spares, i);
    return {};
}

result<ckpt::session_request> make_session(const train::plan& plan, const train::checkpoint_options& asked,
                                           const job_identity& job) {
    ckpt::session_request session;
    const auto* user = ::getpwuid(job.uid);
    if (!user) return fail(errc::not_found, fmt::format("uid {} is unknown on this node", job.uid));
    BANYAN_TRY(const auto shape, topo::parse_shape(plan.shape));
    BANYAN_TRY(const auto request, topo::make_request(shape, static_cast<std::uint32_t>(plan.nodes.size()),
                                                      plan.ranks_per_node, 0));
    session.job = job.job;
    session.restart = plan.restart;
    session.uid = user->pw_uid;
    session.gid = user->pw_gid;
    session.self = job.node;
    session.world = shape.ranks();
    session.dir = asked.directory;
    session.every = asked.every;
    session.flush = asked.flush;
    session.bytes = asked.bytes;
    const auto ranks = topo::ranks_of_slots(request);
    for (std::size_t i = 0; i < plan.nodes.size(); ++i)
        session.nodes.push_back(
            {plan.nodes[i], address_at(plan.addrs, plan.nodes, i), ranks[i], plan.buddies[i]});
    for (std::size_t i = 0; i < plan.spares.size(); ++i)
        session.spares.push_back({plan.spares[i], address_at(plan.spare_addrs, plan.spares, i)});
    return session;
}

result<void> open(const settings& s, const daemon_paths& paths, const job_identity& job) {
    BANYAN_TRY(const auto asked,
               train::parse_checkpoint(spank_variable(train::option_names[train::checkpoint].env)));
    BANYAN_TRY(const auto plan, trusted_plan(s, job));
    const auto address = own_address(plan, job.node);
    if (address.empty())
        return fail(errc::not_found, fmt::format("node {} is not in the job's plan", job.node));
    BANYAN_TRY(const auto session, make_session(plan, asked, job));
    BANYAN_TRY(const auto answer, open_at_daemon(s, paths, address, session, open_timeout));
    if (!answer.warning.empty()) slurm_info("banyan: job %lu: %s", session.job, answer.warning.c_str());
    return {};
}

// Where not even the daemon's place is known, the tasks find the same error in banyan.conf.
result<void> open_or_note(const settings& s) {
    if (spank_variable(train::option_names[train::checkpoint].env).empty()) return {};
    BANYAN_TRY(const auto job, job_of_slurmd());
    BANYAN_TRY(const auto paths, find_daemon(s, job.node));
    auto opened = open(s, paths, job);
    opened ? remove_note(paths, job.job) : leave_note(paths, job.job, opened.error().text());
    return opened;
}

result<void> detach(const settings& s) {
    if (spank_variable(train::option_names[train::checkpoint].env).empty()) return {};
    BANYAN_TRY(const auto job, slurmd_number("SLURM_JOB_ID", UINT32_MAX));
    BANYAN_TRY(const auto node, slurmd_variable("SLURMD_NODENAME"));
    BANYAN_TRY(const auto paths, find_daemon(s, node));
    const bool without = !read_note(paths, job).empty();
    remove_note(paths, job);
    if (without) return {};
    return ckpt::session_detach(paths.socket, job, detach_timeout);
}

}  // namespace

int open_session(spank_t, const settings& s) {
    if (const auto done = open_or_note(s); !done)
        slurm_error("banyan: no checkpoints on this node: %s", done.error().text().c_str());
    return SLURM_SUCCESS;
}

int detach_session(spank_t, const settings& s) {
    if (const auto done = detach(s); !done)
        slurm_error("banyan: end of the checkpoint session: %s", done.error().text().c_str());
    return SLURM_SUCCESS;
}

}  // namespace banyan::spank
