// SPDX-License-Identifier: BSD-3-Clause
//
// What the controller asks of the cluster and does to it. The only way to Slurm. Every call may block
// for seconds: call it on the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace banyan::fault {

struct node_status {
    std::string name;
    bool down = false, drained = false;  ///< drained: DRAIN is set, whether or not work still runs
    std::string reason{};
    bool planned = false;   ///< Slurm restarts it, or has it without power
    std::string address{};  ///< of its slurmd, as Slurm has it
    std::uint16_t port = 0;
    bool busy = false;           ///< a job has it, or one that ended is still being cleared away
    std::int64_t boot_time = 0;  ///< epoch seconds, as its slurmd registered with; 0: not known
};

enum class job_phase : std::uint8_t { pending, running, completing, ended };

struct job_status {
    std::uint32_t id = 0;
    job_phase phase = job_phase::ended;
    std::vector<std::string> nodes;  ///< empty unless it holds some
    std::string batch_host;
    bool may_requeue = false;
    std::uint32_t restarts = 0;
    std::int64_t start_time = 0;  ///< epoch seconds; of a pending job: when it is expected
    std::int64_t begin_time = 0;  ///< of a pending job: it starts not before, as Slurm or somebody set it
    bool exclusive = false;       ///< no other job can have had its nodes since then
    std::string held{};           ///< of a pending job that only a person lets go: why; else empty
    std::string end{};            ///< of one that has ended: how, such as "FAILED, exit code 137"
};

/// A step of a job that runs or is being ended: srun's, not the batch script.
struct step_status {
    std::uint32_t id = 0;
    std::vector<std::string> nodes;
    std::uint32_t component = 0xfffffffe;  ///< of a heterogeneous step; Slurm's NO_VAL for any other
    std::int64_t start_time = 0;           ///< epoch seconds
    bool starts_again = false;             ///< whoever started it starts the next one, too
};

/// What a node says about the processes of a step. no_answer: its slurmd takes the question, and says nothing
/// within Slurm's message timeout: it waits for a slurmstepd that stands still.
enum class left_behind : std::uint8_t { none, some, no_answer };

/// What runs on a node of a training step.
struct node_ranks {
    std::uint32_t step = 0, of = 0;    ///< of: all ranks of the step
    std::vector<std::uint32_t> ranks;  ///< rising, at least one
    std::int64_t start_time = 0;       ///< of the step, epoch seconds
};

class cluster {
  public:
    virtual ~cluster() = default;
    virtual result<std::uint32_t> node_count() = 0;
    virtual result<node_status> node(const std::string& name) = 0;
    /// Jobs that hold nodes now.
    virtual result<std::vector<job_status>> running_jobs() = 0;
    /// Jobs that hold the node now.
    virtual result<std::vector<job_status>> jobs_on(const std::string& node) = 0;
    virtual result<job_status> job(std::uint32_t id) = 0;
    /// The steps of a job that run now, those of helpers too.
    virtual result<std::vector<step_status>> steps(std::uint32_t job) = 0;
    /// Whether processes of the step are left on the node. An error: that could not be looked at.
    virtual result<left_behind> processes(std::uint32_t job, const step_status& step,
                                          const std::string& node) = 0;
    /// How many nodes a job that runs needs to go on, spares not counted; empty when it was placed without a
    /// plan. unavailable: slurmctld did not tell; other errors: what it told cannot be believed.
    virtual result<std::optional<std::uint32_t>> nodes_needed(const job_status& job) = 0;
    /// Whether somebody starts the training step of a job that runs again when it ends: banyan-run. As
    /// nodes_needed; true for a job without a plan, of which that is not known.
    virtual result<bool> starts_again(const job_status& job) = 0;
    /// Of the training step that the job runs now. not_found: it was placed without a plan, or has no such
    /// step there; unavailable: slurmctld did not tell; other errors: what it told cannot be believed.
    virtual result<node_ranks> ranks_on(const job_status& job, const std::string& node) = 0;
    /// Ends the node's part of every job, and keeps it out until it is resumed. Two calls of Slurm's: where
    /// it fails, the first may be done.
    virtual result<void> set_down(const std::string& node, const std::string& reason) = 0;
    /// Ends the node's part of every job. Whether it is back when its slurmd registers, Slurm decides
    /// (ReturnToService).
    virtual result<void> set_lost(const std::string& node, const std::string& reason) = 0;
    /// Lets work end, takes no new.
    virtual result<void> set_drain(const std::string& node, const std::string& reason) = 0;
    /// Ends the node's part of every job. Its reason stays, and it takes no new work.
    virtual result<void> release(const std::string& node) = 0;
    virtual result<void> resume(const std::string& node) = 0;
    /// Kills every task of a step. One that has ended already counts as done.
    virtual result<void> end_step(std::uint32_t job, std::uint32_t step) = 0;
    /// One that somebody else, such as banyan-run, has put back into the queue already counts as done.
    virtual result<void> requeue(std::uint32_t job) = 0;
    /// Puts a line into the output of the job, or of its srun.
    virtual result<void> tell(std::uint32_t job, const std::string& text) = 0;
    /// StartTime=now for a pending job.
    virtual result<void> start_now(std::uint32_t job) = 0;
};

/// Talks to slurmctld through libslurm, which reads $SLURM_CONF. Calls before a configuration exists fail
/// with errc::unavailable, and work as soon as there is one.
std::unique_ptr<cluster> make_slurm_cluster();

/// Reasons that begin so are the daemon's, and banyan-sweep's: but for slurmctld's own
/// (controller/node_reasons.hpp) nothing else is ever changed.
constexpr std::string_view our_reason_prefix = "banyan:", sweep_reason_prefix = "banyan-sweep:";

}  // namespace banyan::fault
