// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a job that is said to go on does: followed until a new step of it runs and a newer training step is
// complete, with a time limit for each. A job that gets no new step in time goes one rung down: it is
// requeued, once.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "common/clock.hpp"
#include "fault/controller/job_follower.hpp"

namespace banyan::fault {

/// What verifications know of each other.
class verifications {
  public:
    /// A job is followed for one incident at a time: its newest failure. False: incident `number` is about a
    /// node that holds up the job in a recovery which is followed already.
    bool begin(std::uint32_t job, std::uint64_t number, bool stuck);
    bool follows(std::uint32_t job, std::uint64_t number) const;
    void end(std::uint32_t job, std::uint64_t number);
    /// Nodes that say nothing hold up `job`. Gives the other job of which that was found a short while ago:
    /// what two jobs have in common is rather the network, or this controller.
    std::optional<std::uint32_t> silence_shared(std::uint32_t job, clock::time_point now);

  private:
    std::map<std::uint32_t, std::uint64_t> followed_;  // job -> incident
    std::uint32_t silent_job_ = 0;
    clock::time_point silent_at_;
};

struct verification_tools : recovery_tools {
    /// The newest training step that is complete on all ranks of the job, asked on some of `nodes`; none when
    /// nobody told. The job may have no checkpoints.
    std::function<task<std::optional<std::int64_t>>(std::uint32_t job, std::vector<std::string> nodes)>
        progress;
    std::shared_ptr<verifications> others = std::make_shared<verifications>();
};

/// Follows the job of incident `number`, which was `before` when its node was taken out and is said to go on.
/// What is found is recorded with the incident, with the time of each phase. The tools must outlive the task.
/// `ended_step`: its node stays, and that step was ended to start again. Until it is over, the history says
/// that it is under way.
task<void> verify_job(const verification_tools& tools, std::uint64_t number, job_status before,
                      std::optional<std::uint32_t> ended_step = {});

/// Goes on with what an earlier controller had begun, which is kept with the incident.
task<void> verify_again(const verification_tools& tools, std::uint64_t number, followed_job kept);

}  // namespace banyan::fault
