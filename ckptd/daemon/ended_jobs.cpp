// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/ended_jobs.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <sys/resource.h>

#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds drain_timeout{60'000};
constexpr milliseconds drain_settle{5000};
constexpr milliseconds letting_go{5000};
/// Less than a prolog waits for a session, and a rank for its memory.
constexpr milliseconds kept_from_others{20'000};
/// Descriptors of all jobs: where there are more no ended one keeps its own, and they are soon counted.
constexpr std::size_t most_beside_ended = 8192;

std::unexpected<error> not_stored(const session& s, milliseconds lease) {
    const auto& dir = s.request.dir;
    const auto& newest = s.warnings.newest;
    const auto known = newest.find(dir) != std::string::npos;
    return fail(
        errc::unavailable,
        fmt::format("{}: step {} is in memory alone: {}", in_words(s), s.committed->step,
                    known       ? newest
                    : s.durable ? fmt::format("{} has step {}", dir, s.durable->step)
                                : fmt::format("nothing that this run saved got to {}", dir)),
        fmt::format("it is tried once more when the job ends, and kept there for {} s: a requeue goes on "
                    "from it as soon as {} can be looked at",
                    std::chrono::duration_cast<std::chrono::seconds>(lease).count(), dir));
}

}  // namespace

// A job that ended at its time limit, by a fault, or by its user's word: the next one has another number, and
// begins from storage.
task<void> ended_jobs::leave_in_storage(session_ptr s) {
    if (!s->slot || s->ending || s->request.dir.empty() || s->request.flush == 0) co_return;
    const auto generation = s->generation;
    s->ending = true;
    const auto turn = ++s->endings;
    s->kept_until = clock::now() + kept_from_others;
    s->notify();
    co_await settle(s, clock::now() + drain_timeout);
    const std::function<bool()> goes_on = [&] {
        return s->detached && s->generation == generation && s->endings == turn;
    };
    co_await flushes_.store_newest(s, goes_on, s->lease_end);
    if (s->endings != turn) co_return;  // it came back and left again, while storage or the leader was silent
    s->ending = false;
    s->notify();
}

task<result<void>> ended_jobs::drain(session_ptr s) {
    const auto until = clock::now() + drain_timeout;
    co_await settle(s, until);
    const std::function<bool()> goes_on = [] { return true; };
    co_await flushes_.store_newest(s, goes_on, until);
    if (!is_stored(*s)) co_return not_stored(*s, core_.config.retention);
    co_return result<void>{};
}

task<result<void>> ended_jobs::drain_all(session_ptr job) {
    const auto left = std::make_shared<std::size_t>(0);
    const auto failed = std::make_shared<std::optional<error>>();
    const auto one = [](ended_jobs* self, session_ptr of, session_ptr s, std::shared_ptr<std::size_t> open,
                        std::shared_ptr<std::optional<error>> into) -> task<void> {
        const auto drained = co_await self->drain(std::move(s));
        if (!drained) *into = drained.error();
        --*open;
        of->notify();
    };
    for (const auto& [name, s] : job->states) {
        ++*left;
        core_.spawn(one(this, job, s, left, failed));
    }
    const auto drained = co_await drain(job);
    while (*left != 0) co_await job->changed->wait(clock::now() + milliseconds(500));
    if (drained && *failed) co_return std::unexpected(**failed);
    co_return drained;
}

task<void> ended_jobs::settle(session_ptr s, clock::time_point until) {
    // What this node has sealed becomes complete as soon as the last rank seals it; one that never does is
    // not waited for long.
    const auto straggler = std::min(until, clock::now() + drain_settle);
    const auto open = [&] {
        return std::any_of(s->copies.begin(), s->copies.end(), [&](const auto& c) {
            return c->buffer >= 0 && c->key.generation == s->generation &&
                   (!s->committed || c->key > *s->committed);
        });
    };
    while (!s->closed && (s->pending != 0 ? clock::now() < until : open() && clock::now() < straggler))
        co_await s->changed->wait(std::min(until, clock::now() + milliseconds(50)));
}

// A lease keeps what a requeued job will want; a job that runs comes first. Of a user who has several the
// others go before his last: it is no way to keep a node's memory by one short job after the other.
bool ended_jobs::give_up_one(scarce what) {
    struct ended {
        std::uint64_t much = 0;
        std::size_t jobs = 0;
        session_ptr oldest;
    };
    std::map<uid_t, ended> users;
    const auto is_kept = [](const auto& one) { return one->ending && clock::now() < one->kept_until; };
    for (const auto& [job, s] : core_.sessions) {
        const auto all = with_states(s);
        if (!s->detached || std::any_of(all.begin(), all.end(), is_kept)) continue;
        auto& u = users[s->request.uid];
        for (const auto& one : all)
            u.much += what == scarce::memory ? one->memory_bytes() : descriptors_of(*one);
        ++u.jobs;
        if (!u.oldest || s->lease_end < u.oldest->lease_end) u.oldest = s;
    }
    const auto most = std::max_element(users.begin(), users.end(), [](const auto& a, const auto& b) {
        return std::pair(a.second.jobs > 1, a.second.much) < std::pair(b.second.jobs > 1, b.second.much);
    });
    if (most == users.end()) return false;
    const auto much = what == scarce::memory ? format_bytes(most->second.much)
                                             : fmt::format("{} descriptors", most->second.much);
    spdlog::warn(
        "job {}: its memory is given up before its lease ends: a job that runs needs it, and uid {} "
        "has {} ended jobs here, with {}",
        most->second.oldest->job(), most->first, most->second.jobs, much);
    core_.free_session(most->second.oldest);
    return true;
}

std::uint64_t ended_jobs::memory_of_ended() const {
    std::uint64_t sum = 0;
    for (const auto& [job, s] : core_.sessions)
        if (s->detached) sum += core_.memory_of_job(*s);
    return sum;
}

result<void> ended_jobs::make_descriptor(const session& s) {
    rlimit files{};
    if (uncounted_ != 0 || ::getrlimit(RLIMIT_NOFILE, &files) != 0) {
        uncounted_ -= std::min<std::size_t>(uncounted_, 1);
        return {};
    }
    const std::size_t most = files.rlim_cur / 2, beside_ended = std::min(most, most_beside_ended);
    for (;;) {
        std::size_t all = 0, his = 0;
        for (const auto& one : core_.all_sessions()) {
            const auto some = descriptors_of(*one);
            all += some;
            if (one->request.uid == s.request.uid) his += some;
        }
        if (all < beside_ended) {
            uncounted_ = (beside_ended - all) / 8;  // each takes three of them at most
            return {};
        }
        if (give_up_one(scarce::descriptors)) continue;
        if (all < most || his < most / 2) return {};
        return fail(errc::exhausted,
                    fmt::format("{}: jobs of uid {} have {} descriptors of banyan-ckptd, of {} for all users",
                                in_words(s), s.request.uid, his, most),
                    "raise LimitNOFILE= of banyan-ckptd, or end jobs on this node");
    }
}

task<bool> ended_jobs::make_room(std::uint64_t bytes) {
    const auto used = core_.budget->used(), limit = core_.budget->limit();
    const auto stays = used - std::min(used, memory_of_ended());
    if (bytes > limit || stays > limit - bytes) co_return false;
    if (give_up_one(scarce::memory)) {
        // It is free when the last who works on it has let go: storage may have it in its hands.
        timer pause(core_.io);
        const auto until = clock::now() + letting_go;
        while (core_.budget->used() >= used && clock::now() < until) {
            pause.expires_after(milliseconds(10));
            co_await pause.async_wait(as_result);
        }
        co_return true;
    }
    session_ptr next;
    for (const auto& s : core_.all_sessions())
        if (s->ending && (!next || s->kept_until < next->kept_until)) next = s;
    if (!next) co_return false;
    while (next->ending && !next->closed && clock::now() < next->kept_until)
        co_await next->changed->wait(next->kept_until);
    co_return true;
}

}  // namespace banyan::ckpt
