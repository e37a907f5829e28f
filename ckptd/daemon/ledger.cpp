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

}  // namespace banyan::ckpt
