// SPDX-License-Identifier: BSD-3-Clause
//
// Steps that go to storage out of turn: the newest one at a job's end or before a node goes, and milestones.
#include <utility>

#include "ckptd/daemon/flusher.hpp"
#include "ckptd/daemon/request.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds ask_timeout{5000};
constexpr milliseconds ask_leader_again{1000};
constexpr milliseconds after_failure{1000};  // and longer after the next
constexpr milliseconds look_at_wanted{10'000};
constexpr std::chrono::minutes wanted_within{10};
constexpr int most_failures = 3;  // of flushes while the newest step is waited for

}  // namespace

answer_meta flusher::on_flush_now(const session_ptr& s) {
    if (!s->committed || s->request.dir.empty() || s->request.flush == 0) return json::object();
    if (s->durable && *s->durable >= *s->committed) {
        json has;
        put_key(has, *s->durable);  // the word of it may have been lost
        return has;
    }
    // When one is under way the caller asks again by waiting.
    if (s->flush.led_for != s->generation) begin(s, true);
    return json::object();
}

task<void> flusher::store_newest(session_ptr s, std::function<bool()> goes_on, clock::time_point until) {
    if (s->request.dir.empty() || s->request.flush == 0 || !s->committed) co_return;
    auto failures = s->bytes.flush_failures.load();
    auto ask_at = clock::now();
    int failed = 0;
    while (!s->closed && goes_on() && s->committed && !is_stored(*s) && clock::now() < until) {
        if (const auto now = s->bytes.flush_failures.load(); std::exchange(failures, now) != now) {
            // Of an earlier turn, or of what passes.
            if (++failed == most_failures) co_return;
            ask_at = clock::now() + failed * after_failure;
        }
        if (clock::now() >= ask_at) {
            json meta = header_of(*s);
            const auto asked =
                co_await peers_.ask_leader(s, peer_message::flush_now, std::move(meta), ask_timeout);
            if (!asked) (void)on_flush_now(s);
            if (asked && *asked)
                if (const auto has = get_key(**asked)) apply_durable(s, *has);
            ask_at = clock::now() + ask_leader_again;
        }
        co_await s->changed->wait(std::min(until, ask_at));
    }
}

void flusher::store_soon(const session_ptr& s, std::uint64_t step) {
    // One task, whoever asks how often.
    if (!std::exchange(s->flush.wanted, step)) core_.spawn(store_wanted(s));
}

task<void> flusher::store_wanted(session_ptr s) {
    const auto generation = s->generation;
    const auto goes_on = [s, generation] {
        const auto wanted = s->flush.wanted;
        return !s->closed && s->generation == generation && (!s->durable || s->durable->step < *wanted);
    };
    while (goes_on() && (!s->committed || s->committed->step < *s->flush.wanted))
        co_await s->changed->wait(clock::now() + look_at_wanted);
    // Where storage does not take it, the turns try again.
    co_await store_newest(s, goes_on, clock::now() + wanted_within);
    s->flush.wanted.reset();
}

}  // namespace banyan::ckpt
