// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/hang_watch.hpp"

#include <algorithm>
#include <utility>

#include "common/json_fields.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds look_for_hangs_every{5'000}, standings_within{2'000};
constexpr milliseconds hang_holds_for{3 * look_for_hangs_every};  // after the leader's last word

/// Of those that have said something, and have not ended.
std::vector<standing> standings_of(const session& s) {
    std::vector<standing> out;
    for (const auto rank : s.own_ranks()) {
        const auto at = s.ranks.find(rank);
        if (at == s.ranks.end() || !at->second.memory || !at->second.process) continue;
        const auto& r = at->second;
        auto one = standing_of(r.header().rank_beat, rank, clock::now());
        if (!one || r.finalized == r.process) continue;
        if (one->late) one->process = r.process->state();
        out.push_back(*one);
    }
    return out;
}

bool are_late(const std::vector<standing>& some) { return std::ranges::all_of(some, &standing::late); }

bool are_all_of(const std::vector<standing>& sorted, std::uint32_t world) {
    if (sorted.size() != world) return false;
    for (std::uint32_t rank = 0; rank < world; ++rank)
        if (sorted[rank].rank != rank) return false;
    return true;
}

}  // namespace

void hang_watch::watch(const session_ptr& s) {
    auto& h = s->hung;
    if (s->detached || !s->slot || !s->agreed->rules().has_begun() ||
        s->agreed->leader() != s->agreed->rules().slot() || h.looking || clock::now() < h.next_look)
        return;
    auto own = standings_of(*s);
    if (own.empty() || !are_late(own)) {
        h.found.reset();
        return;
    }
    h.next_look = clock::now() + look_for_hangs_every;
    core_.spawn(look(s, std::move(own)));
}

task<void> hang_watch::look(session_ptr s, std::vector<standing> all) {
    s->hung.looking = true;
    const struct done {
        bool& looking;
        ~done() { looking = false; }
    } done{s->hung.looking};
    const auto generation = s->generation;
    const auto nodes = s->request.nodes;
    for (const auto& node : nodes) {
        if (node.name == s->self()) continue;
        const auto said = co_await peers_.link_to(node, false)
                              ->call(peer_message::standing, header_of(*s), standings_within);
        if (!said || s->closed || s->generation != generation) co_return;
        const auto there = standings_from(*said, s->request.world);
        if (!there || !are_late(*there)) co_return;
        all.insert(all.end(), there->begin(), there->end());
    }
    std::ranges::sort(all, {}, &standing::rank);
    if (!are_all_of(all, s->request.world)) co_return;
    if (const auto what = find_hang(all)) found(s, *what);
}

void hang_watch::found(const session_ptr& s, const hang& what) {
    auto& h = s->hung;
    const bool is_news = !h.found || h.found->ranks != what.ranks || h.found->step != what.step;
    h.found = what;
    h.until = clock::now() + hang_holds_for;
    std::uint64_t held_back = 0;
    if (is_news && s->warnings.lines.pass("a hang", clock::now(), held_back))
        spdlog::warn("{}: {} ({} more since)", in_words(*s), in_words(*s, what), held_back);
    auto meta = header_of(*s);
    meta["ranks"] = what.ranks;
    meta["step"] = what.step;
    meta["why"] = what.why;
    peers_.broadcast(s, peer_message::hung, std::move(meta));
}

json hang_watch::tell_standings(const session& s) { return to_json(standings_of(s)); }

answer_meta hang_watch::on_hung(session& s, const json& meta) {
    const json_fields in(meta);
    hang what;
    BANYAN_TRY(what.ranks, in.numbers("ranks", s.request.world));
    BANYAN_TRY(what.step, in.number("step"));
    BANYAN_TRY(what.why, in.text("why"));
    s.hung.found = std::move(what);
    s.hung.until = clock::now() + hang_holds_for;
    return json::object();
}

}  // namespace banyan::ckpt
