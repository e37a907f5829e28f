// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/agreement/vote_counter.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace banyan::ckpt::agreement {

vote_counter::outcome vote_counter::count(std::uint64_t generation, const std::optional<copy_key>& base,
                                          const vote& v) {
    outcome out;
    if (v.rank >= world_) return out;
    for (const auto& [key, safety, heard] : v.kept) {
        if (key.generation != generation && key != base) continue;
        auto& t = tallies_[key];
        t.votes.resize(world_);
        auto& mine = t.votes[v.rank];
        if (!mine) ++t.voted;
        if (safety == level::replicated && mine != level::replicated) ++t.replicated;
        if (!mine || safety == level::replicated) mine = safety;
        if (t.passed_over) {
            out.known.emplace_back(passed_over{key});
        } else if (t.voted == world_) {
            const commit c{key, t.replicated == world_ ? level::replicated : level::memory};
            if (!std::exchange(t.decided, true))
                out.committed.push_back(c);
            else if (!heard)
                out.known.emplace_back(c);
        }
    }
    for (auto& [key, t] : tallies_) {
        if (key.generation != generation || key.step < v.first || key.step >= v.end || t.passed_over ||
            t.voted == world_)
            continue;
        const auto is_kept = [&](const auto& one) { return one.key == key; };
        if (t.votes[v.rank] || std::any_of(v.kept.begin(), v.kept.end(), is_kept)) continue;
        t.passed_over = true;
        out.passed_over.push_back(key);
    }
    // Not that of what all began from, which is the oldest: who has not heard of its end asks for that with
    // every vote, and keeps a buffer until then.
    while (tallies_.size() > most) {
        const auto oldest = tallies_.begin();
        tallies_.erase(oldest->first == base ? std::next(oldest) : oldest);
    }
    return out;
}

std::vector<copy_key> vote_counter::open() const {
    std::vector<copy_key> out;
    for (const auto& [key, t] : tallies_)
        if (t.voted < world_ && !t.passed_over) out.push_back(key);
    return out;
}

std::vector<std::uint32_t> vote_counter::missing(const copy_key& key) const {
    std::vector<std::uint32_t> out;
    const auto at = tallies_.find(key);
    for (std::uint32_t rank = 0; at != tallies_.end() && rank < world_; ++rank)
        if (!at->second.votes[rank]) out.push_back(rank);
    return out;
}

}  // namespace banyan::ckpt::agreement
