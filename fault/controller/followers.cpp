// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/followers.hpp"

#include <boost/asio/detached.hpp>

#include "common/clock.hpp"
#include "fault/controller/job_follower.hpp"

namespace banyan::fault {

void followers::begin(std::uint64_t number, const std::vector<job_status>& jobs, bool requeued) {
    for (const auto& job : jobs) {
        auto& of = under_way_[number];
        if (!of.jobs.insert(job.id).second) continue;
        if (!of.wake) of.wake = std::make_shared<timer>(tools_.io, timer::time_point::max());
        asio::co_spawn(tools_.io, follow_job(tools_, number, job, clock::now(), requeued),
                       [this, number, job](const std::exception_ptr&, bool goes_on) {
                           // On its own: what the incident asks for is done.
                           if (goes_on)
                               asio::co_spawn(tools_.io, verify_job(tools_, number, job), asio::detached);
                           ended(number, job.id);
                       });
    }
}

void followers::ended(std::uint64_t number, std::uint32_t job) {
    const auto of = under_way_.find(number);
    if (of == under_way_.end()) return;
    of->second.jobs.erase(job);
    if (!of->second.jobs.empty()) return;
    of->second.wake->cancel();
    under_way_.erase(of);
}

task<void> followers::wait(std::uint64_t number) {
    const auto of = under_way_.find(number);
    if (of == under_way_.end()) co_return;
    const auto wake = of->second.wake;
    co_await wake->async_wait(as_result);
}

void followers::leave(std::uint64_t number) {
    if (const auto of = under_way_.find(number); of != under_way_.end()) of->second.wake->cancel();
}

}  // namespace banyan::fault
