// SPDX-License-Identifier: BSD-3-Clause
//
// Who follows the jobs of which incident: each job by one follower, however often its incident is acted on.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "common/timer.hpp"
#include "fault/controller/verification.hpp"

namespace banyan::fault {

class followers {
  public:
    /// The tools must outlive what is begun here.
    explicit followers(const verification_tools& tools) : tools_(tools) {}

    /// Follows each of `jobs` that is not followed for incident `number` yet; see follow_job.
    void begin(std::uint64_t number, const std::vector<job_status>& jobs, bool requeued);
    bool any(std::uint64_t number) const { return under_way_.contains(number); }
    /// Back when the last one of the incident has ended, or leave() was called.
    task<void> wait(std::uint64_t number);
    /// Who waits for them waits no longer; they go on.
    void leave(std::uint64_t number);

  private:
    struct of_incident {
        std::set<std::uint32_t> jobs;
        std::shared_ptr<timer> wake;
    };

    void ended(std::uint64_t number, std::uint32_t job);

    const verification_tools& tools_;
    std::map<std::uint64_t, of_incident> under_way_;
};

}  // namespace banyan::fault
