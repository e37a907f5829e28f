// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/departures.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ckptd/net/peer.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds word_timeout{1000};
constexpr milliseconds tell_again{30'000};
/// Daemons of a launch say their votes again every second. But of one that has not begun here, or of one
/// node, there is nobody to say anything, and its next step may still come.
constexpr std::chrono::seconds shortest_silence{10};
constexpr std::chrono::hours longest_silence{24};
/// One of them may have come into the job after the others left it.
constexpr std::uint32_t slots_that_tell = 2;

// What it holds of a state is of use until the launch needs no former nodes for that.
bool may_go(const session& s, const std::set<std::string>& keeps) {
    return std::all_of(keeps.begin(), keeps.end(), [&](const auto& name) {
        if (name.empty()) return s.agreed->rules().needs_no_former();
        const auto known = s.states.find(name);
        return known != s.states.end() && known->second->agreed->rules().needs_no_former();
    });
}

bool is_due(const session& s, const std::string& name) {
    const auto said = s.former.said.find(name);
    if (said == s.former.said.end()) return true;
    if (clock::now() < said->second.again) return false;
    return !said->second.keeps || may_go(s, *said->second.keeps);
}

// Between a requeue and its first launch what runs here is the launch before, which speaks for the job no
// more.
bool is_over(const session& s) { return s.generation < make_generation(s.request.restart, std::nullopt); }

}  // namespace

// Who would tell this node may be gone as well: when the job ends no epilog runs where it was not any more.
void departures::watch_silence(const session_ptr& s) {
    if (s->detached) return;
    const auto all = with_states(s);
    const auto lives = [](const auto& r) { return r.second.process && r.second.process->alive(); };
    if (std::ranges::any_of(all, [&](const auto& one) { return std::ranges::any_of(one->ranks, lives); }))
        s->heard = clock::now();
    // The only node that is left hears nothing while no step runs, and is the job's all the same.
    const auto is_there = [&](const auto& n) {
        return n.name != s->self() && !peers_.link_to(n, false)->is_silent();
    };
    const bool has_others =
        s->agreed->rules().has_begun() && !is_over(*s) && std::ranges::any_of(s->request.nodes, is_there);
    const clock::duration most = has_others ? std::max<milliseconds>(core_.config.retention, shortest_silence)
                                            : milliseconds(longest_silence);
    if (clock::now() < s->heard + most) return;
    spdlog::warn("job {}: nothing was heard of it for {} s, no rank of it lives here: its lease begins",
                 s->job(), std::chrono::duration_cast<std::chrono::seconds>(most).count());
    begin_lease(s);
}

void departures::begin_lease(const session_ptr& s) {
    for (const auto& one : with_states(s)) {
        one->detached = true;
        one->lease_end = clock::now() + core_.config.retention;
        core_.keep(one);
    }
}

void departures::watch(const session_ptr& s) {
    watch_silence(s);
    const auto& left = s->former.left;
    if (left.empty() || s->former.telling || s->detached || !s->slot || *s->slot >= slots_that_tell) return;
    if (is_over(*s)) return;
    // One that has not begun may need what they hold. And they are not asked for nothing.
    const auto all = with_states(s);
    const auto begun = [](const auto& one) { return one->agreed->rules().has_begun(); };
    const auto alone = [](const auto& one) { return one->agreed->rules().needs_no_former(); };
    if (!std::all_of(all.begin(), all.end(), begun) || std::none_of(all.begin(), all.end(), alone)) return;
    if (std::none_of(left.begin(), left.end(), [&](const auto& node) { return is_due(*s, node.first); }))
        return;
    s->former.telling = true;
    core_.spawn(tell_all(s, s->generation));
}

task<void> departures::tell_all(session_ptr s, std::uint64_t generation) {
    const auto nodes = s->former.left;
    for (const auto& [name, addr] : nodes) {
        if (s->closed || s->detached || s->generation != generation || is_over(*s)) break;
        const session_node node{name, addr, {}, 0};
        if (s->former.left.contains(name) && is_due(*s, name)) co_await tell(s, node);
    }
    s->former.telling = false;
}

task<void> departures::tell(session_ptr s, session_node node) {
    const auto generation = s->generation;
    const auto counts = [&] { return !s->closed && s->generation == generation && !is_over(*s); };
    const auto later = [&] { s->former.said[node.name].again = clock::now() + tell_again; };
    const auto asked = co_await ask(s, node);
    if (!counts() || !s->former.left.contains(node.name)) co_return;
    if (!asked) co_return later();
    if (!may_go(*s, *s->former.said[node.name].keeps)) co_return;
    const auto to = peers_.new_link(node);
    json meta = header_of(*s);
    meta["uid"] = s->request.uid;
    const auto said = co_await to->call(peer_message::leave, std::move(meta), word_timeout);
    to->close();
    if (!counts()) co_return;
    // That the job has no memory there, or not this user's, is an answer. Where a launch as new as this one,
    // or newer, has a part of it, whoever is in that one tells; should nobody be, this one does.
    if (!said && said.error().code != errc::not_found && said.error().code != errc::denied) co_return later();
    s->former.forget_departure(node.name);
    core_.keep(s);
}

task<result<void>> departures::ask(session_ptr s, session_node node) {
    if (s->former.said[node.name].keeps) co_return result<void>{};
    const auto generation = s->generation;
    auto keeps = co_await former_.ask_of_all_states(s, node);
    if (!keeps) co_return std::unexpected(keeps.error());
    if (s->closed || s->generation != generation || is_over(*s) || !s->former.left.contains(node.name))
        co_return result<void>{};
    for (const auto& name : *keeps)
        if (!name.empty() && !s->states.contains(name)) s->former.states.insert(name);
    starts_.open_former_states(s);
    s->former.said[node.name].keeps = std::move(*keeps);
    co_return result<void>{};
}

result<void> departures::on_leave(const session_ptr& s, std::uint64_t generation) {
    if (generation < make_generation(s->request.restart, std::nullopt))
        return fail(errc::conflict, fmt::format("job {} was started again, with a part on node {}", s->job(),
                                                core_.config.node));
    if (generation <= last_round(s->generation))
        return fail(errc::conflict, fmt::format("job {} has ranks on node {}", s->job(), core_.config.node));
    if (!s->agreed->rules().may_be_left_by(generation))
        return fail(errc::conflict, fmt::format("a later launch of job {} than {:x} rests on node {}",
                                                s->job(), generation, core_.config.node));
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
    begin_lease(s);
    return {};
}

}  // namespace banyan::ckpt
