// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/launches.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ckptd/daemon/encoding.hpp"
#include "ckptd/daemon/packing.hpp"
#include "ckptd/daemon/request.hpp"
#include "ckptd/protocol/state_name.hpp"
#include "ckptd/store/safetensors.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds agree_timeout{2000};
// Of a node's ranks: little beside what a copy to the buddy takes. Nothing is committed before all have
// voted, so that the first ones' votes lose nothing if they wait for the others' copies.
constexpr milliseconds votes_within{2}, votes_at_most{100};
constexpr milliseconds settle_timeout{2000};  // for checksums of what an older launch has sealed

// Behind that of the newest step in storage. What all begin from may be newer, and its own turn be lost with
// the launch before; or it was saved in this one while storage was looked at.
std::uint64_t next_turn_in_storage(const session& s, const copy_key& begun) {
    if (s.slot != 0u) return begun.step / s.request.flush + 1;
    auto newest = s.storage.newest;
    if (s.durable) newest = std::max(newest, std::optional(s.durable->step));
    return newest ? std::min(*newest, begun.step) / s.request.flush + 1 : 0;
}

struct agreement_frame {
    json meta;
    std::vector<std::byte> packed;  ///< the body
};

agreement_frame in_one_frame(const session& s, std::uint32_t slot, job_agreement::messages what) {
    agreement_frame out{header_of(s), {}};
    for (auto& m : what) {
        if (agreement::pack(m, out.packed)) continue;
        out.meta["messages"].push_back(agreement::encode(m, s.request.nodes[slot].ranks));
    }
    return out;
}

}  // namespace

session_ptr launches::make_session() {
    auto s = std::make_shared<session>();
    s->heard = clock::now();
    s->changed = std::make_shared<async_event>(core_.io.get_executor());
    s->memory_lock = std::make_shared<async_lock>(core_.io.get_executor());
    s->launch_lock = std::make_shared<async_lock>(core_.io.get_executor());
    s->bring_lock = std::make_shared<async_lock>(core_.io.get_executor());
    s->agreed = make_agreement(s);
    return s;
}

std::shared_ptr<job_agreement> launches::make_agreement(const std::weak_ptr<session>& of) {
    job_agreement::host h;
    h.spawn = [this](task<void> work) { core_.spawn(std::move(work)); };
    h.send = [this, of](std::uint32_t slot, job_agreement::messages what) -> task<result<void>> {
        const auto s = of.lock();
        if (!s || slot >= s->request.nodes.size()) co_return fail(errc::internal, "no such slot");
        const auto to = to_.peers.link_to(s->request.nodes[slot], false);
        auto said = in_one_frame(*s, slot, std::move(what));
        const auto generation = s->generation;
        const auto answer =
            co_await to->call(peer_message::agree, std::move(said.meta), agree_timeout, said.packed);
        if (!answer) co_return std::unexpected(answer.error());
        core_.heard_of(*s);
        if (s->generation == generation) take_hindrance(s, slot, *answer);
        co_return result<void>{};
    };
    h.tell = [this, of](std::uint32_t slot, job_agreement::messages what) -> task<result<void>> {
        const auto s = of.lock();
        if (!s || slot >= s->request.nodes.size()) co_return fail(errc::internal, "no such slot");
        const auto to = to_.peers.link_to(s->request.nodes[slot], false);
        auto said = in_one_frame(*s, slot, std::move(what));
        co_return co_await to->tell(peer_message::agreed, std::move(said.meta), agree_timeout, said.packed);
    };
    h.gather = [this, of](copy_key newest) -> task<void> {
        const auto until = clock::now() + votes_at_most;
        timer moment(core_.io, votes_within);
        co_await moment.async_wait(as_result);
        const auto s = of.lock();
        const auto on_their_way = [&] {
            return std::any_of(s->copies.begin(), s->copies.end(), [&](const auto& c) {
                return c->own && !c->handled && !c->dropped && c->key <= newest &&
                       c->key.generation == s->generation;
            });
        };
        while (s && !s->closed && on_their_way() && clock::now() < until) co_await s->changed->wait(until);
    };
    h.keep = [this, of] {
        if (const auto s = of.lock()) core_.keep(s);
    };
    h.bring = [this, of](agreement::prepare what) {
        if (const auto s = of.lock()) core_.spawn(to_.restores.bring_all(s, std::move(what)));
    };
    h.begin = [this, of] {
        if (const auto s = of.lock()) on_begin(s);
    };
    h.fenced = [of] {
        const auto s = of.lock();
        if (!s) return;
        const auto g = s->agreed->rules().generation();
        s->enter_generation(g, first_round(g) != first_round(s->generation));
    };
    h.free = [of](agreement::shelf::id number) {
        const auto s = of.lock();
        if (!s) return;
        if (const auto c = s->find_copy(number)) s->drop_copy(c);
    };
    h.forgot = [this, of] {
        const auto s = of.lock();
        if (s && s->hold.held) core_.spawn(to_.dirs.forget_former(s));
    };
    h.changed = [this, of] {
        if (const auto s = of.lock()) on_changed(s);
    };
    return std::make_shared<job_agreement>(std::move(h));
}

result<std::uint64_t> launches::launch_of(const session& s, std::optional<std::uint32_t> step) const {
    const auto current = first_round(s.generation);
    if (step) {
        const auto g = make_generation(s.request.restart, step);
        if (g == current || s.announced.contains(g)) return g;
        return fail(errc::conflict,
                    fmt::format("step {} of job {} is none that trains on this node", *step, s.job()),
                    "slurmd's log says why it was not announced");
    }
    return s.announced.empty() ? current : std::max(current, s.announced.rbegin()->first);
}

task<result<void>> launches::enter(session_ptr s, std::uint64_t generation, std::uint64_t but) {
    const auto held = co_await s->launch_lock->acquire();
    if (generation == first_round(s->generation)) co_return result<void>{};
    const auto over = fail(errc::conflict, fmt::format("job {}: a newer step has begun", s->job()));
    if (generation < s->generation || !s->announced.contains(generation)) co_return over;
    const auto all = with_states(s);
    for (const auto& one : all)
        for (const auto& [rank, r] : one->ranks)
            if (r.owner != 0 && r.owner != but && r.process && r.process->alive())
                co_return fail(errc::conflict, fmt::format("rank {} is held by process {} of an older step",
                                                           rank, r.process->pid()));
    // What was sealed and not looked at yet may be what all begin from.
    for (const auto& one : all)
        for (const auto& [rank, r] : one->ranks) to_.copies.scan_buffers(one, rank);
    const auto until = clock::now() + settle_timeout;
    for (const auto& one : all)
        while (!one->in_checksum.empty() && clock::now() < until) co_await one->changed->wait(until);
    if (s->closed) co_return fail(errc::not_found, "the session ended");
    const auto announced = s->announced.find(generation);
    if (announced == s->announced.end()) co_return over;  // the job was requeued meanwhile
    s->assign(announced->second);
    s->announced.erase(s->announced.begin(), std::next(announced));
    if (!s->slot)
        co_return fail(errc::conflict, fmt::format("node {} has no ranks of job {}", s->self(), s->job()));
    open_launch(s, generation);
    for (const auto& [name, state] : s->states) follow(s, state);
    co_return result<void>{};
}

void launches::open_launch(const session_ptr& s, std::uint64_t generation) {
    agreement::launch l;
    l.generation = generation;
    l.self = *s->slot;
    l.nodes = static_cast<std::uint32_t>(s->request.nodes.size());
    l.world = s->request.world;
    l.slot_of_rank.resize(l.world);
    for (std::uint32_t slot = 0; slot < l.nodes; ++slot)
        for (const auto rank : s->request.nodes[slot].ranks) l.slot_of_rank[rank] = slot;
    l.nonce = core_.nonce;
    l.group = s->request.group;
    s->launched = clock::now();
    s->agreed->open(l);
    to_.users.report_untold(s);
    ++s->storage.look;  // what a launch before this one began is over, whoever leads now
    if (*s->slot == 0) look_at_storage(s);
    s->agreed->tick();
    s->publish();
    spdlog::info("{}: launch {:x}, slot {}", in_words(*s), generation, *s->slot);
}

task<answer_meta> launches::on_agree(session_ptr job, std::string node, json meta,
                                     std::vector<std::byte> packed) {
    BANYAN_CO_TRY(const auto generation, json_fields(meta).number("generation"));
    const auto launch = first_round(generation);
    if (launch >= make_generation(job->request.restart + 1, std::nullopt))
        co_return fail(errc::not_found,
                       fmt::format("job {}: the session on node {} is of restart {}, an older one",
                                   job->job(), core_.config.node, job->request.restart));
    if (launch != first_round(job->generation)) {
        // Not waited for: whoever asks says it again.
        if (launch > job->generation && job->announced.contains(launch))
            core_.spawn(enter_announced(job, launch));
        co_return json::object();
    }
    const auto from = job->slot_of(node);
    if (!from) co_return fail(errc::denied, fmt::format("node {} has no ranks of job {}", node, job->job()));
    auto s = job;
    // Its ranks may ask for it here later, or be waited for by those that have: this daemon is part of it.
    if (meta.contains("state")) {
        BANYAN_CO_TRY(const auto name, json_fields(meta).text("state", max_state_name));
        BANYAN_CO_TRY(s, open_state(job, name));
    }
    // Nothing of it changes anything before the rules have judged of which round and attempt it is.
    const agreement::limits most{static_cast<std::uint32_t>(s->request.nodes.size()), most_ranks(s->request),
                                 max_step};
    BANYAN_CO_TRY(auto what, agreement::unpack(packed, most));
    if (meta.contains("messages")) {
        BANYAN_CO_TRY(const auto list, json_fields(meta).list("messages"));
        for (const auto& entry : meta["messages"]) {
            BANYAN_CO_TRY(auto m, agreement::decode(entry, most));
            what.push_back(std::move(m));
        }
    }
    // Whose shards are there is hindered no more; it says so as a request of its own.
    const auto is_prepared = [](const auto& m) {
        return std::holds_alternative<agreement::prepared>(m.what);
    };
    if (std::ranges::any_of(what, is_prepared)) s->hindered.at.erase(*from);
    s->agreed->receive(*from, what);
    co_return hindrance_of(s);
}

void launches::on_begin(const session_ptr& s) {
    const auto& key = s->agreed->rules().begun_from();
    s->committed = key;
    if (s->durable && s->durable > key) s->durable.reset();  // it could not be brought back
    if (key && s->storage.chosen == key) s->durable = key;
    if (key && s->request.flush != 0) s->flush.next_turn = next_turn_in_storage(*s, *key);
    s->warnings.works_again(user_warnings::launch);
    for (const auto rank : s->own_ranks()) {
        if (!key) continue;
        // Its second copy is made anew, and it is voted for: how far it has come must be known again.
        const auto& copies = s->agreed->rules().copies();
        if (const auto* c = copies.find({*key, rank}, true))
            if (const auto copy = s->find_copy(c->number)) {
                copy->handled = false;
                core_.spawn(to_.copies.protect(s, copy));
            }
    }
    if (key)
        spdlog::info("job {}: begins from step {} of generation {:x}", s->job(), key->step, key->generation);
    else
        spdlog::info("job {}: begins anew: there is no checkpoint", s->job());
    tell_of_given_up(s);
    if (s->agreed->leader() == s->slot) to_.flushes.flush_if_due(s);
}

// The job came back too late for what it had in memory here.
void launches::tell_of_given_up(const session_ptr& s) {
    const auto known = core_.given_up.find(s->job());
    if (known == core_.given_up.end() || known->second.uid != s->request.uid || !s->state.empty()) return;
    if (const auto& key = s->agreed->rules().begun_from(); key && key->step >= known->second.step) return;
    using std::chrono::duration_cast;
    to_.users.warn(
        s, "lease",
        fmt::format("step {}, which was in memory alone, was given up {} s ago: its lease of {} s was over, "
                    "and the job had not come back",
                    known->second.step,
                    duration_cast<std::chrono::seconds>(clock::now() - known->second.at).count(),
                    duration_cast<std::chrono::seconds>(core_.config.retention).count()));
    core_.given_up.erase(known);
}

void launches::on_changed(const session_ptr& s) {
    const auto& rules = s->agreed->rules();
    if (rules.has_begun()) {
        const auto newest = rules.committed(agreement::level::memory);
        s->committed_replicated = newest && rules.committed(agreement::level::replicated) == newest;
        if (newest && newest != s->committed) {
            s->committed = newest;
            ++s->bytes.commits;
            s->warnings.works_again(user_warnings::votes);
            if (s->agreed->leader() == rules.slot()) to_.flushes.flush_if_due(s);
        }
    }
    if (rules.asks_outside() && s->storage.looked == s->storage.look)
        core_.spawn(ask_former(s, ++s->storage.look));
    s->stalled = s->waits_for_others(longest_wait);
    s->forget_ranks();
    s->publish();
    s->notify();
}

task<void> launches::enter_announced(session_ptr s, std::uint64_t generation) {
    const auto entered = co_await enter(s, generation, 0);
    if (!entered) spdlog::debug("job {}: {}", s->job(), entered.error().text());
}

// What everybody waits for is said by the first slot's daemon, and by the others when they miss it.
void launches::watch(const session_ptr& s) {
    // One that was recalled with an older launch than its job: the daemon before ended between the two.
    for (const auto& [name, state] : s->states) follow(s, state);
    const bool begun = s->agreed->rules().has_begun();
    if (!begun || ++s->ticks % 4 == 0) s->agreed->tick();
    if (s->stalled != s->waits_for_others(longest_wait)) {
        s->stalled = !s->stalled;
        s->publish();
    }
    if (begun || s->generation == 0 || !s->slot || s->detached || s->storage.refused) return;
    if (clock::now() < s->launched + core_.config.commit_warning_after) return;
    to_.users.warn(s, user_warnings::launch,
                   fmt::format("the ranks do not begin yet: {}", what_is_waited_for(*s)));
}

}  // namespace banyan::ckpt
