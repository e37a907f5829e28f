// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/departures.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ckptd/net/peer.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds word_timeout{1000};
constexpr milliseconds tell_again{30'000};
// A state that began anew, before its first step: nobody had anything of it.
bool needs_no_others(const session_ptr& s) {
    const auto& rules = s->agreed->rules();
    return rules.stands_alone() || (!s->state.empty() && rules.has_begun() && !rules.begun_from());
}

/// One of them may have come into the job after the others left it.
constexpr std::uint32_t slots_that_tell = 2;

}  // namespace

void departures::watch(const session_ptr& s) {
    auto& left = s->former.left;
    if (left.empty() || s->detached || !s->slot || *s->slot >= slots_that_tell) return;
    const auto all = with_states(s);
    if (!std::all_of(all.begin(), all.end(), needs_no_others)) return;
    if (s->former.telling || clock::now() < s->former.tell_at) return;
    s->former.telling = true;
    core_.spawn(tell(s, s->generation));
}

task<void> departures::tell(session_ptr s, std::uint64_t generation) {
    const auto nodes = s->former.left;
    for (const auto& [name, addr] : nodes) {
        if (s->closed || s->detached || s->generation != generation) break;
        const auto to = peers_.new_link({name, addr, {}, 0});
        json meta = header_of(*s);
        meta["uid"] = s->request.uid;
        const auto said = co_await to->call(peer_message::leave, std::move(meta), word_timeout);
        to->close();
        // A refusal is an answer: the job has no memory there, or is there again.
        if (said || said.error().code != errc::unavailable) s->former.left.erase(name);
    }
    s->former.telling = false;
    s->former.tell_at = clock::now() + tell_again;
}

result<void> departures::on_leave(const session_ptr& s, std::uint64_t generation) {
    if (generation <= last_round(s->generation))
        return fail(errc::conflict, fmt::format("job {} has ranks on node {}", s->job(), core_.config.node));
    if (s->detached) return {};
    const auto lives = [](const auto& r) {
        return r.second.owner != 0 && r.second.process && r.second.process->alive();
    };
    // They are of the run that is over, and end with it: who tells asks again.
    const auto all = with_states(s);
    const auto has_ranks = [&](const auto& one) {
        return std::any_of(one->ranks.begin(), one->ranks.end(), lives);
    };
    if (std::any_of(all.begin(), all.end(), has_ranks)) {
        auto why = fmt::format("job {} has left node {}, where ranks of an earlier run have not ended yet",
                               s->job(), core_.config.node);
        spdlog::info("{}", why);
        return fail(errc::unavailable, std::move(why));
    }
    spdlog::info("job {}: goes on without this node; its memory is kept for the lease", s->job());
    for (const auto& one : all) {
        one->detached = true;
        one->lease_end = clock::now() + core_.config.lease;
        core_.keep(one);
    }
    return {};
}

}  // namespace banyan::ckpt
