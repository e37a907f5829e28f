// SPDX-License-Identifier: BSD-3-Clause
//
// How the tasks of a training step end on one node, for the fault daemon's agent there. A step of thousands
// of tasks that all fail says so a few times, and how many there were.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/job_news.hpp"

namespace banyan::spank {

class task_ends {
  public:
    /// Gives it away, without waiting; false where that was not possible now.
    using teller = std::function<bool(const job_news&)>;

    /// One task ended. What came of itself is told, the first ones at once.
    void ended(const job_news& task, const teller& tell);
    /// No task is left.
    void over(const teller& tell);

  private:
    static constexpr unsigned told_at_once = 4;
    unsigned told_ = 0;
    std::uint64_t untold_ = 0;
    job_news newest_;  ///< of those that are not told
};

/// Tells the node's fault agent at `socket`, and touches nothing else; empty: nobody is there to tell.
task_ends::teller to_agent(std::string socket);

}  // namespace banyan::spank
