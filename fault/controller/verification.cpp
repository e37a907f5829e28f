// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/verification.hpp"

#include <algorithm>

#include "common/clock.hpp"
#include "fault/controller/verification_run.hpp"

namespace banyan::fault {

namespace {

constexpr std::chrono::minutes silence_is_shared_for(5);

void no_longer(incident& i, std::uint32_t job) {
    std::erase_if(i.followed, [job](const followed_job& f) { return f.job == job; });
}

}  // namespace

bool verifications::begin(std::uint32_t job, std::uint64_t number, bool stuck) {
    if (stuck && followed_.contains(job)) return false;
    followed_[job] = number;
    return true;
}

bool verifications::follows(std::uint32_t job, std::uint64_t number) const {
    const auto found = followed_.find(job);
    return found != followed_.end() && found->second == number;
}

void verifications::end(std::uint32_t job, std::uint64_t number) {
    if (follows(job, number)) followed_.erase(job);
}

std::optional<std::uint32_t> verifications::silence_shared(std::uint32_t job, clock::time_point now) {
    const auto other = silent_job_;
    const bool shared = other != 0 && other != job && now - silent_at_ < silence_is_shared_for;
    // The job asks anew, and is not to wait for what it said itself.
    if (shared) return other;
    silent_job_ = job;
    silent_at_ = now;
    return std::nullopt;
}

task<void> verify_job(const verification_tools& tools, std::uint64_t number, job_status before,
                      std::optional<std::uint32_t> ended_step) {
    auto* incident = tools.known.incidents().find(number);
    if (!incident) co_return;
    const auto id = before.id;
    if (!tools.others->begin(id, number, incident->reason == stuck_reason)) co_return;
    no_longer(*incident, id);
    const auto since_ms = clock::wall_ms();
    incident->followed.push_back(
        {id, before.restarts, before.may_requeue, since_ms, before.batch_host, before.nodes, ended_step});
    tools.known.save_soon(number);
    verification_run it(tools, number, incident->object.node, std::move(before), since_ms, ended_step);
    co_await it.run();
    tools.others->end(id, number);
    if ((incident = tools.known.incidents().find(number))) no_longer(*incident, id);
    co_await tools.known.save(number);
}

task<void> verify_again(const verification_tools& tools, std::uint64_t number, followed_job kept) {
    auto* incident = tools.known.incidents().find(number);
    if (!incident) co_return;
    if (!tools.others->begin(kept.job, number, incident->reason == stuck_reason)) {
        no_longer(*incident, kept.job);
        co_return co_await tools.known.save(number);
    }
    job_status before;
    before.id = kept.job;
    before.nodes = std::move(kept.nodes);
    before.batch_host = std::move(kept.script);
    before.may_requeue = kept.may_requeue;
    before.restarts = kept.restarts;
    verification_run it(tools, number, incident->object.node, std::move(before), kept.since_ms,
                        kept.ended_step);
    co_await it.go_on();
    tools.others->end(kept.job, number);
    if ((incident = tools.known.incidents().find(number))) no_longer(*incident, kept.job);
    co_await tools.known.save(number);
}

}  // namespace banyan::fault
