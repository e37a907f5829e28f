// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/emergencies.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ckptd/daemon/local_client.hpp"
#include "ckptd/daemon/process_watch.hpp"
#include "common/json_fields.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds last_words{1000};  // of a process that has ended; they lie in the socket already
constexpr milliseconds hear_again{5};
constexpr milliseconds settle_within{10'000};
constexpr std::chrono::minutes store_within{10};  // then the next turn, or the end of the job, sees to it
constexpr std::chrono::minutes between_words{1};  // a node may say for hours that it is about to fail

}  // namespace

void emergencies::watch(const session_ptr& s, std::uint32_t rank) {
    auto& r = s->ranks[rank];
    const auto ended = [this, weak = std::weak_ptr(s), rank, who = r.last] {
        if (auto job = weak.lock()) core_.spawn(on_end(std::move(job), rank, who));
    };
    r.watch = std::make_shared<process_watch>(core_.io, r.last, ended);
}

task<void> emergencies::on_end(session_ptr s, std::uint32_t rank, std::shared_ptr<const process> who) {
    const auto is_newest = [&] {
        const auto at = s->ranks.find(rank);
        return !s->closed && at != s->ranks.end() && at->second.last == who;
    };
    // What it said before it ended counts: it may be its goodbye.
    const auto until = clock::now() + last_words;
    const auto has_more_to_say = [&] {
        const auto client = s->ranks[rank].client.lock();
        return client && client->has_more_to_say();
    };
    while (is_newest() && s->ranks[rank].finalized != who && has_more_to_say() && clock::now() < until)
        co_await s->changed->wait(clock::now() + hear_again);
    if (!is_newest()) co_return;
    auto& r = s->ranks[rank];
    // Its connection may live on in what it has forked: nobody else says that its buffers are at rest.
    if (r.generation == s->generation) copies_.scan_buffers(s, rank);
    if (r.process == who) {
        r.owner = 0;
        r.process.reset();
    }
    s->notify();
    const bool is_over = s->detached || first_round(r.generation) != first_round(s->generation);
    if (is_over || r.finalized == who || s->finished.contains(rank)) co_return;
    ++s->bytes.deaths;
    std::uint64_t held_back = 0;
    if (s->warnings.lines.pass("a process", clock::now(), held_back))
        spdlog::warn("{}: process {} of rank {} has ended without bck_finalize ({} more since)", in_words(*s),
                     who->pid(), rank, held_back);
    co_await save(s);
}

task<void> emergencies::save(session_ptr s) {
    s->saving.wanted = true;
    if (std::exchange(s->saving.running, true)) co_return;
    const struct done {
        bool& running;
        ~done() { running = false; }
    } done{s->saving.running};
    while (std::exchange(s->saving.wanted, false) && !s->closed && !s->detached) {
        co_await copies_.settle(s, clock::now() + settle_within);
        co_await store(s);
    }
}

// What all have begun from by now may be older than what was complete, but not newer; a launch that begins in
// the middle of it ends the flush, and its leader is asked anew. Of a job that ends ended_jobs sees to the
// rest.
task<void> emergencies::store(session_ptr s) {
    if (!s->committed || s->request.flush == 0) co_return;
    const auto newest = *s->committed;
    spdlog::info("{}: step {} is the newest that is complete, and goes to storage", in_words(*s),
                 newest.step);
    const std::function<bool()> goes_on = [&] { return !s->detached && !(s->durable >= newest); };
    co_await flushes_.store_newest(s, goes_on, clock::now() + store_within);
}

task<answer_meta> emergencies::seal_now(json meta) {
    const auto job = json_fields(meta).number("job");
    for (const auto& s : core_.all_sessions()) {
        if (!job || (*job != 0 && s->job() != *job) || s->detached) continue;
        ++s->seals_wanted;
        s->publish();
    }
    auto answer = co_await copies_.seal_now(std::move(meta));
    if (!answer) co_return answer;
    for (const auto& s : core_.all_sessions()) {
        if ((*job != 0 && s->job() != *job) || s->detached) continue;
        const bool lately =
            s->saving.by_word != clock::time_point{} && clock::now() < s->saving.by_word + between_words;
        // With the job's number somebody who has looked at the job asks.
        if (*job == 0 && lately) continue;
        s->saving.by_word = clock::now();
        core_.spawn(save(s));
    }
    co_return answer;
}

}  // namespace banyan::ckpt
