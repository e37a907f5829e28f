// SPDX-License-Identifier: BSD-3-Clause
//
// Which nodes keep a job from starting again: those that have not ended its last run while the others have.
// A process that cannot be ended, or a slurmstepd that stands still, holds the whole job. Pure: it is told
// what Slurm says of the job.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "fault/controller/last_run.hpp"
#include "fault/slurm/cluster.hpp"

namespace banyan::fault {

struct holders {
    std::vector<std::string> where;  ///< none: what is said of them is that they are not known
    bool taken_out = false;
    std::string known_by{};  ///< how that is known; or why it is not
    std::string why_not{};   ///< they are not taken out
    std::size_t asked = 0;   ///< nodes: the lost one is none of them
    bool operator==(const holders&) const = default;
};

/// More than half of the nodes that were asked, or all of them. What they share is no node's fault, but that
/// of the job, of a file system or of the network, and is not mended by taking nodes out.
bool too_many(std::size_t holders, std::size_t asked);

/// What was seen of a job's last run, judged: on any doubt no node is taken out.
holders judge_last_run(const last_run& seen);

/// For a job that is to start again from the queue. Its nodes are not taken out: where Slurm 22.05 has one go
/// DOWN that a job still completes, it starts the job again without clearing what it had of GRES, and no step
/// of it begins.
class holder_search {
  public:
    using clock = banyan::clock;
    struct limits {
        std::chrono::milliseconds last_run;  ///< that processes which were told to end have for it
        std::chrono::milliseconds alone;     ///< for which the others have ended it already
    };

    /// `job` as it was when it ran. `ending_since`: its last step is being ended since then.
    holder_search(const job_status& job, clock::time_point ending_since, limits within)
        : job_(job.id), script_(job.batch_host), since_(ending_since), within_(within) {}

    /// Each time that Slurm tells of the job. Each set of holders is told once.
    std::optional<holders> look(const job_status& now, clock::time_point at);

  private:
    std::uint32_t job_;
    std::string script_;  // the node of the batch script, which is told to end later than the step
    clock::time_point since_;
    limits within_;
    std::optional<clock::time_point> ending_;  // the whole job is
    clock::time_point changed_;
    std::vector<std::string> where_, told_;
};

}  // namespace banyan::fault
