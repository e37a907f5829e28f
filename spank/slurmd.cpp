// SPDX-License-Identifier: BSD-3-Clause
//
// In the job's prolog and epilog, as root on every node of the allocation: the checkpoint daemon runs and has
// the session's memory before the first task starts; after the job the session waits out its lease. A prolog
// that fails drains the node, so these report and succeed.
#include <fmt/format.h>

#include "ckptd/protocol/protocol.hpp"
#include "spank/job_plan.hpp"
#include "spank/note.hpp"
#include "spank/plugin.hpp"
#include "spank/session.hpp"

namespace banyan::spank {
namespace {

constexpr auto open_timeout =
    std::chrono::seconds(30);  // the daemon may have to make gigabytes of memory ready
constexpr auto detach_timeout = std::chrono::seconds(2);

result<void> open(const settings& s, const daemon_paths& paths, const job_identity& job) {
    BANYAN_TRY(const auto asked,
               train::parse_checkpoint(spank_variable(train::option_names[train::checkpoint].env)));
    BANYAN_TRY(const auto plan, trusted_plan(s, job));
    BANYAN_TRY(const auto address, own_address(plan, job.node));
    BANYAN_TRY(const auto session, make_session(plan, asked, job.uid, job.node));
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

// Also of a job that was submitted without checkpoints: a step may have opened a session for it.
result<void> detach(const settings& s) {
    const bool asked = !spank_variable(train::option_names[train::checkpoint].env).empty();
    BANYAN_TRY(const auto job, slurmd_number("SLURM_JOB_ID", UINT32_MAX));
    BANYAN_TRY(const auto node, slurmd_variable("SLURMD_NODENAME"));
    const auto paths = find_daemon(s, node);
    if (!paths) return asked ? result<void>(std::unexpected(paths.error())) : result<void>();
    const bool without = !read_note(*paths, job).empty();
    remove_note(*paths, job);
    auto detached = ckpt::session_detach(paths->socket, job, detach_timeout);
    return asked && !without ? detached : result<void>();
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
