// SPDX-License-Identifier: BSD-3-Clause
//
// One job that is followed: internal to verification*.cpp, which has a source for each of its subjects.
#pragma once

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/timer.hpp"
#include "fault/controller/verification.hpp"
#include "fault/sources/log_line.hpp"

namespace banyan::fault {

inline constexpr const char* still_none = "has no new step after it was requeued: look at the job";

class verification_run {
  public:
    verification_run(const verification_tools& tools, std::uint64_t number, std::string node,
                     job_status before, std::int64_t since_ms, std::optional<std::uint32_t> ended_step)
        : tools_(tools),
          timer_(tools.io),
          number_(number),
          node_(std::move(node)),
          before_(std::move(before)),
          target_(std::to_string(before_.id)),
          since_ms_(since_ms),
          ended_step_(ended_step) {}

    task<void> run();
    /// What an earlier controller had begun.
    task<void> go_on();

  private:
    enum class outcome : std::uint8_t { reached, too_late, over };
    /// not_known: whether a node holds up the job could not be looked at.
    enum class look_back : std::uint8_t { nobody, taken_out, left_alone, not_known };

    task<void> verify();
    /// The training without the lost node; where the node stays, its next step; or that of a later run.
    task<outcome> await_step(clock::time_point since);
    std::chrono::milliseconds already(std::int64_t since_ms, std::int64_t started_s) const;
    task<result<std::optional<step_status>>> new_step(job_status now);
    task<result<std::optional<step_status>>> training_of(job_status now, std::vector<step_status> among);
    task<look_back> find_holders();
    /// The job runs again since it lost the node: none of what it has is of the run before.
    bool anew(const job_status& now) const { return now.restarts > before_.restarts; }
    task<bool> next_rung();
    task<bool> put_into_queue();
    task<bool> follow(bool requeued);
    task<void> await_training();
    task<std::optional<std::int64_t>> newest(std::vector<std::string> nodes);
    task<result<job_status>> look();
    /// Slurm may be away for long; but no longer than the job is followed for this incident.
    task<result<job_status>> look_until_told();
    void none_stuck();
    /// By another incident of the job, which is the newer one.
    bool taken_over() {
        const bool is = !tools_.others->follows(before_.id, number_);
        if (is) conclude("is followed for a newer failure of it now", true);
        return is;
    }
    void conclude(std::string text, bool done) {
        tools_.known.record(number_, "verify", target_, std::move(text), done);
    }
    void conclude_ended(const job_status& now) {
        conclude("has ended" + (now.end.empty() ? "" : ": " + now.end), true);
    }
    std::string phases(std::int64_t trained_ms) const;

    const verification_tools& tools_;
    timer timer_;
    const std::uint64_t number_;
    const std::string node_;
    const job_status before_;
    const std::string target_;
    const std::int64_t since_ms_;                    // the job is followed
    const std::optional<std::uint32_t> ended_step_;  // the node stays
    std::optional<std::int64_t> before_training_;
    step_status step_;
    std::int64_t step_ms_ = 0;
    std::chrono::milliseconds pause_ = tools_.limits.pause;
    holders doubt_;                   // the last that was said
    bool queued_ = false;             // and was followed from there
    clock::time_point ending_since_;  // the step that had the node
};

}  // namespace banyan::fault
