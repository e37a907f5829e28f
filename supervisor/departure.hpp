// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a step runs on a node that has left the allocation. Slurm ends a step that loses a node by one
// signal. One that comes while the step is launched finds no task on any node, and is not repeated: the
// launch that follows starts all of them, also on the node that is lost, and they train. A step that does not
// end although it got its signal, since a node hangs, trains no more: that one is Slurm's and faultd's.
// No Slurm, no clock of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.hpp"

namespace banyan::supervisor {

class departure {
  public:
    using clock = banyan::clock;

    /// Of no step: there is nothing to look at.
    departure() = default;
    /// srun has its step, on these nodes.
    departure(clock::time_point began, std::vector<std::string> nodes);

    /// All of its tasks are launched: what is lost from now on, Slurm's signal ends.
    void trains(clock::time_point now);
    /// Whether slurmctld is to be asked for the allocation. Often at first, and a few dozen times at most
    /// unless it does not answer: a cluster has thousands of jobs.
    bool is_due(clock::time_point now) const { return !over_ && now >= next_; }
    /// No more looks are needed.
    bool is_over() const { return over_; }
    /// What slurmctld said; nothing where it did not answer, which tells neither that a node is there nor
    /// that it is not. `saved`: the newest training step that is complete; nothing where that is not known.
    /// Returns the nodes of the step that left, when they have been out for longer than a step takes that
    /// Slurm has killed, and it has completed another training step since.
    std::vector<std::string> look(clock::time_point now,
                                  const std::optional<std::vector<std::string>>& allocation,
                                  std::optional<std::uint64_t> saved);

  private:
    std::vector<std::string> step_;
    std::vector<std::string> gone_;       // out of the allocation in every answer since since_
    std::optional<std::uint64_t> saved_;  // when whatever had its signal was dead
    clock::time_point began_, since_, next_, until_;
    bool over_ = true;
};

}  // namespace banyan::supervisor
