// SPDX-License-Identifier: BSD-3-Clause
//
// When a job that trains with fewer data parallel groups than it asked for looks whether it could have all of
// them: from time to time, and each time right after a training step that is complete in memory. No Slurm, no
// clock of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "common/clock.hpp"

namespace banyan::supervisor {

class full_size {
  public:
    using clock = banyan::clock;

    /// Of a job that never looks.
    full_size() = default;
    /// `in_vain`: this run began with fewer groups, since the others did not come when it asked for all.
    full_size(clock::time_point now, bool in_vain);

    /// Whether to look now. `saved`: the newest training step that is complete; nothing where that is not
    /// known.
    bool is_due(clock::time_point now, std::optional<std::uint64_t> saved);
    /// The next step's end is waited for.
    bool is_near(clock::time_point now) const { return next_ && now >= *next_; }

  private:
    std::optional<clock::time_point> next_;
    std::optional<std::uint64_t> saved_;  // when the look became due
};

}  // namespace banyan::supervisor
