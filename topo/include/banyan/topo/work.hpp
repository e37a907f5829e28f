// SPDX-License-Identifier: BSD-3-Clause
//
// What an answer of placement may cost. slurmctld waits for it with its locks held, and a user chooses the
// request: so every loop that is more than a pass over hosts or nodes takes its steps from here, and takes a
// shorter way when none are left. Counted, not timed: the same input gives the same output
// everywhere.
#pragma once

#include <cstdint>

namespace banyan::topo {

/// Of one request, in steps: things looked at, some nanoseconds each.
class work {
  public:
    explicit work(std::int64_t steps) : left_(steps) {}

    void spend(std::int64_t steps) {
        left_ -= steps;
        spent_ += steps;
    }
    void spend(std::size_t steps) { spend(static_cast<std::int64_t>(steps)); }
    /// False when all are spent.
    bool any() const { return left_ > 0; }
    std::int64_t left() const { return left_; }
    std::int64_t spent() const { return spent_; }

  private:
    std::int64_t left_, spent_ = 0;
};

/// The most that one call of place() may take. Jobs of real shapes on 12,800 hosts take a fifth of it at
/// most.
constexpr std::int64_t most_work_of_placement = 3'000'000;

}  // namespace banyan::topo
