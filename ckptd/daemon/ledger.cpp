// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/ledger.hpp"

namespace banyan::ckpt {

vote_ledger::outcome vote_ledger::vote(const copy_key& key, std::uint32_t rank, bool replicated,
                                       std::uint32_t world) {
    auto& t = tallies_[key];
    if (t.state.size() != world) t = {std::vector<std::uint8_t>(world), 0, 0};
    auto& state = t.state[rank];
    if (state == 0) ++t.voted;
    if (replicated && state != 2) ++t.replicated;
    state = replicated || state == 2 ? 2 : 1;
    const outcome out{t.voted == world, t.replicated == world};
    while (tallies_.size() > max_open) tallies_.erase(tallies_.begin());
    return out;
}

std::pair<copy_key, std::vector<std::uint32_t>> vote_ledger::missing() const {
    const auto& [key, t] = *tallies_.begin();
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < t.state.size(); ++rank)
        if (t.state[rank] == 0) ranks.push_back(rank);
    return {key, std::move(ranks)};
}

}  // namespace banyan::ckpt
