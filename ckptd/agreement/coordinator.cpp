// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/agreement/coordinator.hpp"

#include <algorithm>

namespace banyan::ckpt::agreement {

namespace {
bool is_overtaken(const copy_key& key, const std::set<beginning>& begun) {
    return std::ranges::any_of(begun, [&](const auto& b) { return b.overtakes(key); });
}
}  // namespace

coordinator::coordinator(std::uint32_t slots, std::uint32_t world, std::uint64_t nonce, std::uint32_t group)
    : slots_(slots), world_(world), group_(group), ballot_{1, nonce} {}

void coordinator::attempt(std::uint64_t number) {
    ballot_.number = number;
    phase_ = phase::collecting;
    inventories_.clear();
    answered_.clear();
    awaited_.reset();
    // A question that was not asked is none that was answered: what made it needless may be gone.
    if (!outside_asked_) storage_.reset();
}

void coordinator::set_storage(std::vector<copy_key> committed, bool outside_asked) {
    storage_ = std::move(committed);
    outside_asked_ = outside_asked;
    choose();
}

void coordinator::on(std::uint32_t from, const inventory& m) {
    if (m.number != ballot_ || from >= slots_) return;
    if (phase_ == phase::collecting) {
        inventories_[from] = m;
        choose();
        return;
    }
    if (phase_ != phase::preparing || m.life == inventories_[from].life) return;
    // Another life of that daemon. One that has lost all since it answered: what was chosen may rest on what
    // it said, and its ranks may have gone.
    if (m.forgetful)
        attempt(ballot_.number + 1);
    else
        inventories_[from] = m;
}

void coordinator::on(std::uint32_t from, const prepared& m) {
    if (phase_ != phase::preparing || m.number != ballot_ || from >= slots_) return;
    if (!m.failed.empty()) {
        // Bad where it lies, or gone meanwhile: another attempt, without it.
        for (const auto rank : m.failed) {
            if (!choice_.key || rank >= world_) continue;
            auto& at = unavailable_[{*choice_.key, rank, choice_.source_of(rank)}];
            at.insert(choice_.holders[rank].begin(), choice_.holders[rank].end());
            failed_at_[rank] = from;
        }
        attempt(ballot_.number + 1);
        return;
    }
    answered_.insert(from);
    if (answered_.size() < slots_) return;
    answered_.clear();
    phase_ = phase::releasing;
}

void coordinator::on(std::uint32_t from, const released& m) {
    if (phase_ != phase::releasing || m.number != ballot_ || from >= slots_) return;
    answered_.insert(from);
    if (answered_.size() == slots_) phase_ = phase::done;
}

void coordinator::on(std::uint32_t, const outbid& m) {
    // An earlier life of this daemon was further: go beyond it.
    if (phase_ <= phase::releasing && m.promised > ballot_) attempt(m.promised.number + 1);
}

std::optional<std::optional<copy_key>> coordinator::forced() const {
    const inventory* newest = nullptr;
    for (const auto& [slot, i] : inventories_) {
        if (i.accepted && (!newest || *i.accepted > *newest->accepted)) newest = &i;
    }
    if (!newest) return std::nullopt;
    // Ranks went only after all had accepted: one that remembers and has not says that none went. The ballots
    // may differ where an attempt to tell the rest was cut off; then the checkpoint is the same.
    for (const auto& [slot, i] : inventories_)
        if (!i.forgetful && (!i.accepted || i.key != newest->key)) return std::nullopt;
    return newest->key;
}

std::map<copy_key, choice> coordinator::candidates() const {
    std::map<copy_key, choice> out;
    const auto entry = [&](const copy_key& key) -> choice& {
        auto& c = out[key];
        if (!c.key) {
            c.key = key;
            c.holders.resize(world_);
        }
        return c;
    };
    const auto add = [&](std::uint32_t holder, const std::vector<held>& copies) {
        for (const auto& h : copies) {
            if (h.rank >= world_ && group_ == 0) continue;
            auto& c = entry(h.key);
            c.saved[h.rank].push_back(holder);
            if (h.rank < world_) c.holders[h.rank].push_back(holder);
        }
    };
    for (const auto& [slot, i] : inventories_) add(slot, i.copies);
    auto number = slots_;
    for (const auto& o : outside_.said) add(number++, o.has.copies);
    for (const auto& key : *storage_) entry(key).storage = true;
    if (group_ != 0)
        for (auto& [key, c] : out) stand_in(c);
    std::erase_if(out, [&](const auto& one) {
        const auto& c = one.second;
        const auto has = [&](const auto& holders) { return !holders.empty(); };
        return !c.storage && !std::all_of(c.holders.begin(), c.holders.end(), has);
    });
    return out;
}

// Of ranks that there are no more, too.
void coordinator::stand_in(choice& c) const {
    const auto ranks = c.saved.empty() ? world_ : std::max(world_, c.saved.rbegin()->first + 1);
    const auto own = c.holders;
    const auto holders_of = [&](std::uint32_t rank) {
        const auto at = c.saved.find(rank);
        return at == c.saved.end() ? std::vector<std::uint32_t>() : at->second;
    };
    for (std::uint32_t rank = 0; rank < world_; ++rank) {
        const auto tried = [&](std::uint32_t source, const std::vector<std::uint32_t>& holders) {
            const auto at = unavailable_.find({*c.key, rank, source});
            return at != unavailable_.end() &&
                   std::ranges::all_of(holders, [&](auto holder) { return at->second.contains(holder); });
        };
        // Where its own daemon still has its own, that was whole and refused, and would be taken again.
        if (!own[rank].empty() &&
            (!tried(rank, own[rank]) || std::ranges::count(own[rank], failed_at_.at(rank))))
            continue;
        for (auto other = rank % group_; other < ranks; other += group_) {
            auto holders = holders_of(other);
            if (other == rank || holders.empty()) continue;
            const bool in_vain = tried(other, holders);
            if (in_vain && c.instead.contains(rank)) continue;
            c.holders[rank] = std::move(holders);
            c.instead[rank] = other;
            if (!in_vain) break;
        }
    }
}

void coordinator::hear_of_replicated() {
    for (const auto& [slot, i] : inventories_) {
        if (i.replicated) heard_replicated_.insert(*i.replicated);
        begun_.insert(i.begun);
    }
    for (const auto& o : outside_.said) begun_.insert(o.has.begun);
}

void coordinator::choose() {
    if (phase_ != phase::collecting || !storage_ || inventories_.size() < slots_) return;
    const auto complete = candidates();
    std::set<copy_key> whole;
    for (const auto& [key, c] : complete)
        if (!is_spoilt(c)) whole.insert(key);
    hear_of_replicated();
    awaited_.reset();
    const auto already = forced();
    const auto lacks = already ? std::nullopt : missed(whole);
    if (outside_.some_are_silent && lacks && (whole.empty() || *whole.rbegin() < *lacks)) {
        awaited_ = lacks;
        storage_.reset();
        return;
    }
    replicated_.reset();
    // What a member has heard to be replicated. Not where all have since begun from an older step: then it
    // came to be so behind their backs, and their parts of it are gone. The newest is the last.
    for (const auto& key : heard_replicated_)
        if (whole.contains(key) || !is_overtaken(key, begun_)) replicated_ = key;
    choice_ = {};
    replicated_outside_.reset();
    all_heard_ = outside_asked_ && outside_.is_all();
    answered_.clear();
    phase_ = phase::preparing;
    const auto take = [&](const copy_key& key) {
        choice_ = complete.at(key);
        for (const auto& o : outside_.said) choice_.outside.push_back(o.where);
        replicated_outside_ = replicated_outside(whole);
    };
    if (already) {
        const auto forgets = [](const auto& one) { return one.second.forgetful; };
        if (std::any_of(inventories_.begin(), inventories_.end(), forgets)) {
            phase_ = phase::stale;
            return;
        }
        choice_.key = *already;
        if (!choice_.key) return;
        if (whole.contains(**already))
            take(**already);
        else
            phase_ = phase::lost;  // some ranks have gone with what the others cannot get any more
        return;
    }
    if (!whole.empty())
        take(*whole.rbegin());
    else if (!complete.empty() || !unavailable_.empty())
        phase_ = phase::lost;  // what was to be brought was a checkpoint, too, even if nobody has it now
}

std::optional<copy_key> coordinator::missed(const std::set<copy_key>& whole) const {
    auto known = heard_replicated_;
    for (const auto& o : outside_.said)
        if (o.has.replicated) known.insert(*o.has.replicated);
    std::optional<copy_key> out;
    for (const auto& key : known)
        if (!whole.contains(key) && !is_overtaken(key, begun_)) out = key;
    return out;
}

// What is older than that they free, and so may the members. Only of the round whose step is chosen, from
// which that step came, and only what is whole: in a launch since then they may have let go of their part.
std::optional<copy_key> coordinator::replicated_outside(const std::set<copy_key>& whole) const {
    std::optional<copy_key> out;
    for (const auto& o : outside_.said) {
        const auto& key = o.has.replicated;
        if (!key || key > choice_.key || key->generation != choice_.key->generation) continue;
        if (whole.contains(*key)) out = std::max(out, key);
    }
    return out;
}

bool coordinator::is_spoilt(const choice& c) const {
    for (auto at = unavailable_.lower_bound({*c.key, 0, 0}); at != unavailable_.end(); ++at) {
        const auto& [key, rank, source] = at->first;
        if (key != c.key) break;
        // Storage was tried with each of them.
        if (source != c.source_of(rank) && !c.holders[rank].empty()) continue;
        const auto in_vain = [&](auto holder) { return at->second.contains(holder); };
        if (std::all_of(c.holders[rank].begin(), c.holders[rank].end(), in_vain)) return true;
    }
    return false;
}

std::optional<copy_key> coordinator::newest_if_whole() const {
    std::optional<copy_key> newest;
    if (!unavailable_.empty()) return newest;
    for (const auto& [slot, i] : inventories_)
        for (const auto& h : i.copies) newest = std::max(newest, std::optional(h.key));
    if (!newest) return std::nullopt;
    // Who has lost its part of a newer one holds nothing of that any more, and the rest may be elsewhere.
    for (const auto& [slot, i] : inventories_)
        if (i.had > newest) return std::nullopt;
    std::set<std::uint32_t> ranks;
    for (const auto& [slot, i] : inventories_)
        for (const auto& h : i.copies)
            if (h.key == *newest) ranks.insert(group_ != 0 ? h.rank % group_ : h.rank);
    return ranks.size() == (group_ != 0 ? group_ : world_) ? newest : std::nullopt;
}

std::vector<node_address> coordinator::former() const {
    std::vector<node_address> out;
    for (const auto& [slot, i] : inventories_) out.insert(out.end(), i.former.begin(), i.former.end());
    return out;
}

std::vector<std::uint32_t> coordinator::waits_for() const {
    std::vector<std::uint32_t> out;
    if (phase_ > phase::releasing) return out;
    for (std::uint32_t slot = 0; slot < slots_; ++slot)
        if (phase_ == phase::collecting ? !inventories_.contains(slot) : !answered_.contains(slot))
            out.push_back(slot);
    return out;
}

std::vector<coordinator::envelope> coordinator::due() const {
    std::vector<envelope> out;
    for (const auto slot : waits_for()) {
        if (phase_ == phase::collecting)
            out.push_back({slot, collect{ballot_}});
        else if (phase_ == phase::preparing)
            out.push_back({slot, prepare{ballot_, choice_, inventories_.at(slot).life}});
        else
            out.push_back({slot, release{ballot_, choice_.key, std::max(replicated_, replicated_outside_),
                                         all_heard_}});
    }
    return out;
}

}  // namespace banyan::ckpt::agreement
