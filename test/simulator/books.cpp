// SPDX-License-Identifier: BSD-3-Clause
#include "test/simulator/books.hpp"

#include <algorithm>

namespace banyan::ckpt::simulator {

using agreement::level;

books::entry books::look(const copy_key& key, const machines& m) {
    entry out{key, {}};
    out.holders.resize(m.states());
    for (std::uint32_t i = 0; i < m.nodes().size(); ++i)
        for (const auto& c : m.nodes()[i].agreed.copies().copies())
            if (c.what.key == key && c.checked && m.intact(i, c.number))
                out.holders[m.state_of(c.what.rank)].insert({i, m.nodes()[i].life});
    return out;
}

bool books::is_held(const copy_key& key, std::uint32_t rank, const machines& m) {
    for (std::uint32_t i = 0; i < m.nodes().size(); ++i)
        for (const auto& c : m.nodes()[i].agreed.copies().copies())
            if (c.what == agreement::held{key, rank} && c.checked && m.intact(i, c.number)) return true;
    return false;
}

bool books::acknowledge(const agreement::agreement& a, level safety, const machines& m) {
    const auto key = a.committed(safety);
    auto& newest = newest_[static_cast<std::size_t>(safety)];
    if (!key || (newest && *key <= newest->key)) return false;
    // Of what was replicated in a former launch only what was begun from is news. With another one some node
    // remembers what a newer one had overtaken before it left: that was no promise any more.
    if (key->generation != a.generation() && (safety == level::memory || key != a.begun_from())) return false;
    newest = look(*key, m);
    acknowledged_.insert(*key);
    for (std::uint32_t rank = 0; rank < a.world(); ++rank) {
        // A node may have lost what it had voted for; then nobody is to blame. But who still has his memory
        // must still have the copy.
        const auto voter = saved_.find({*key, rank});
        if (!is_held(*key, rank, m) && voter != saved_.end() &&
            m.nodes()[voter->second.first].life == voter->second.second &&
            !is_damaged(voter->second.first, *key))
            throw breach{
                fmt::format("step {} is committed and rank {}'s shard was let go of", key->step, rank)};
    }
    return true;
}

bool books::survived(const entry& e, const std::set<std::uint32_t>& nodes, const machines& m) const {
    const auto stands = [&](const auto& holder) {
        const auto [node, life] = holder;
        return m.nodes()[node].life == life && nodes.contains(node) && !is_damaged(node, e.key);
    };
    return std::all_of(e.holders.begin(), e.holders.end(), [&](const auto& holders) {
        return std::any_of(holders.begin(), holders.end(), stands);
    });
}

bool books::begin(const std::optional<copy_key>& key, const agreement::agreement& a, const reach& within,
                  const assignment& heard, const machines& m) {
    bool older = false;
    auto all = within.nodes;
    all.insert(within.silent.begin(), within.silent.end());
    for (auto& newest : newest_) {
        if (!newest || (key && newest->key <= *key)) continue;
        const bool is_known = &newest == &newest_[static_cast<std::size_t>(level::replicated)] &&
                              newest->key <= within.replicated;
        if (survived(*newest, is_known ? all : within.nodes, m))
            throw breach{
                fmt::format("acknowledged step {} of {:x} has survived, and the job begins from {}",
                            newest->key.step, newest->key.generation,
                            key ? fmt::format("{} of {:x}", key->step, key->generation) : "nothing")};
        older = true;
        newest.reset();
    }
    // Who had heard that it is replicated may be gone; then it was good for this one restart. Not if one of
    // those who have answered still knows it: what all begin from came from it, and all of it is there.
    auto& second = newest_[static_cast<std::size_t>(level::replicated)];
    const bool unknown = second && a.committed(level::replicated) < second->key;
    const auto knows = [&](auto node) {
        return m.nodes()[node].agreed.committed(level::replicated) >= second->key;
    };
    if (unknown && key && second->key < *key && second->key.generation == key->generation &&
        std::any_of(heard.begin(), heard.end(), knows) && survived(*second, {heard.begin(), heard.end()}, m))
        throw breach{fmt::format("step {} of {:x} is replicated, which is forgotten", second->key.step,
                                 second->key.generation)};
    if (unknown) second.reset();
    reached_all(key, m);
    return older;
}

void books::reached_all(const std::optional<copy_key>& key, const machines& m) {
    auto& newest = newest_[static_cast<std::size_t>(level::memory)];
    if (key && (!newest || newest->key <= *key)) newest = look(*key, m);
}

bool books::is_whole(const copy_key& key, const std::set<std::uint32_t>& among, const machines& m) const {
    if (!acknowledged_.contains(key)) return false;
    const auto e = look(key, m);
    return std::all_of(e.holders.begin(), e.holders.end(), [&](const auto& holders) {
        return std::any_of(holders.begin(), holders.end(),
                           [&](const auto& h) { return among.contains(h.first); });
    });
}

std::optional<copy_key> books::needs(std::uint32_t node, const machines& m) const {
    for (const auto& newest : newest_) {
        if (!newest) continue;
        const auto now = look(newest->key, m);
        const auto none = [](const auto& holders) { return holders.empty(); };
        const auto no_other = [&](const auto& holders) {
            return std::ranges::all_of(holders, [&](const auto& h) { return h.first == node; });
        };
        if (std::ranges::none_of(now.holders, none) && std::ranges::any_of(now.holders, no_other))
            return newest->key;
    }
    return std::nullopt;
}

void books::give_up(std::uint32_t node, std::uint64_t generation) {
    for (auto& e : newest_) {
        if (!e || e->key.generation >= generation) continue;
        for (auto& holders : e->holders)
            std::erase_if(holders, [&](const auto& h) { return h.first == node; });
    }
}

void books::renew(const machines& m) {
    auto& e = newest_[static_cast<std::size_t>(level::replicated)];
    if (e) e = look(e->key, m);
}

std::optional<copy_key> books::newest(level safety) const {
    const auto& e = newest_[static_cast<std::size_t>(safety)];
    return e ? std::optional(e->key) : std::nullopt;
}

}  // namespace banyan::ckpt::simulator
