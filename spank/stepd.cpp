// SPDX-License-Identifier: BSD-3-Clause
//
// In slurmstepd: before the tasks start the node's checkpoint daemon learns who holds which slot, and after
// their end the node's fault agent how they ended. Nothing here may fail the step: a task without checkpoints
// trains on.
#include <chrono>

#include <fmt/format.h>
#include <unistd.h>

#include "ckptd/protocol/protocol.hpp"
#include "common/clock.hpp"
#include "common/text.hpp"
#include "spank/late_session.hpp"
#include "spank/note.hpp"
#include "spank/plugin.hpp"
#include "spank/task_ends.hpp"
#include "train/plan_without_select.hpp"

namespace banyan::spank {
namespace {

constexpr auto daemon_timeout = std::chrono::milliseconds(2000);

/// This node's name before slurmstepd has set SLURMD_NODENAME: until then the variable is that of the batch
/// script's node.
std::string own_name(spank_t sp) {
    std::uint32_t index = 0;
    const auto nodes = expand_hostlist(job_variable(sp, "SLURM_STEP_NODELIST"));
    if (!nodes || spank_get_item(sp, S_JOB_NODEID, &index) != ESPANK_SUCCESS || index >= nodes->size())
        return {};
    // The list is as the step's user sent it, and the name becomes a part of a path.
    const auto& name = (*nodes)[index];
    return name.starts_with('.') || name.find('/') != std::string::npos ? std::string() : name;
}

/// From which the plan follows where nobody stores it. The text is the step's user's.
train::options options_of_step(spank_t sp) {
    const auto text_of = [sp](train::which option) {
        return job_variable(sp, train::option_names[option].variable);
    };
    return train::options_of_plan(text_of).value_or(train::options{});
}

/// slurmstepd is of one step. What its hooks need later is read at the step's begin: a file system that hangs
/// by its end must not keep slurmstepd from ending.
struct {
    task_ends ends;
    std::string agent;  ///< the fault agent's socket
    step_daemon daemon;
} own_step;

/// Tells the daemon that the step begins, after it has opened a session where no prolog did.
void open_at(spank_t sp, const settings& s, const daemon_paths& paths, std::uint32_t job, std::uint32_t step,
             const std::string& checkpoints) {
    const auto nodes = expand_hostlist(job_variable(sp, "BANYAN_STEP_NODES"));
    if (!nodes) return;
    const auto restart = parse_number(job_variable(sp, "BANYAN_STEP_RESTART"), UINT32_MAX);
    ckpt::step_request request{job, step, *nodes};
    if (restart) request.restart = static_cast<std::uint32_t>(*restart);
    auto opened = ckpt::step_open(paths.socket, request, daemon_timeout);
    // A keeper starts a daemon that was killed again at once.
    const bool was_there = ::access(paths.socket.c_str(), F_OK) == 0;
    for (int left = was_there ? 10 : 0; left > 0 && !opened && !daemon_answers(paths); --left) {
        clock::sleep_for(std::chrono::milliseconds(100));
        opened = ckpt::step_open(paths.socket, request, daemon_timeout);
    }
    // The session may be of a time when a node of the step was none of the job's.
    const bool knows_less =
        !opened && (opened.error().code == errc::not_found || opened.error().code == errc::denied);
    if (!opened && (knows_less || !daemon_answers(paths))) {
        const auto late = open_late_session(s, paths, job, *nodes, options_of_step(sp), checkpoints);
        if (late) {
            slurm_info("banyan: job %u: no prolog opened its checkpoint session; this step did", job);
            request.restart = *late;
            opened = ckpt::step_open(paths.socket, request, daemon_timeout);
        } else {
            opened = std::unexpected(late.error());
        }
    }
    if (!opened)
        slurm_error("banyan: checkpoints of step %u.%u: %s", job, step, opened.error().text().c_str());
}

}  // namespace

bool is_training_step(spank_t sp) { return !job_variable(sp, "BANYAN_STEP_NODES").empty(); }

int open_step(spank_t sp, const settings& s) {
    std::uint32_t job = 0, step = 0;
    if (!is_training_step(sp)) return SLURM_SUCCESS;
    if (spank_get_item(sp, S_JOB_ID, &job) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_STEPID, &step) != ESPANK_SUCCESS || step >= SLURM_MAX_NORMAL_STEP_ID)
        return SLURM_SUCCESS;
    const auto node = own_name(sp);
    if (node.empty()) {
        own_step.daemon.why_off = "the step does not say which of its nodes this is";
        return SLURM_SUCCESS;
    }
    const auto paths = find_daemon(s, node);
    if (!paths) {
        own_step.daemon.why_off = paths.error().text();
        slurm_info("banyan: step %u.%u: no agent will hear of tasks that fail: %s", job, step,
                   own_step.daemon.why_off.c_str());
        return SLURM_SUCCESS;
    }
    own_step.agent = paths->agent;
    const auto checkpoints = job_variable(sp, train::option_names[train::checkpoint].variable);
    if (checkpoints.empty()) return SLURM_SUCCESS;
    if (read_note(*paths, job).empty()) open_at(sp, s, *paths, job, step, checkpoints);
    own_step.daemon = {paths->socket, read_note(*paths, job)};
    return SLURM_SUCCESS;
}

const step_daemon& daemon_of_step() { return own_step.daemon; }

int note_task_end(spank_t sp) {
    job_news task;
    if (own_step.agent.empty() || spank_get_item(sp, S_TASK_EXIT_STATUS, &task.status) != ESPANK_SUCCESS ||
        !failed_by_itself(task.status) || !is_training_step(sp) ||
        spank_get_item(sp, S_JOB_ID, &task.job) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_STEPID, &task.step) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_TASK_GLOBAL_ID, &task.rank) != ESPANK_SUCCESS ||
        task.step >= SLURM_MAX_NORMAL_STEP_ID)
        return SLURM_SUCCESS;
    own_step.ends.ended(task, to_agent(own_step.agent));
    return SLURM_SUCCESS;
}

int note_step_end() {
    own_step.ends.over(to_agent(own_step.agent));
    return SLURM_SUCCESS;
}

}  // namespace banyan::spank
