// SPDX-License-Identifier: BSD-3-Clause
//
// The leader's book of votes. Plain data: no clock, no network.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ckptd/agreement/key.hpp"

namespace banyan::ckpt {

/// Counts the ranks that have put their part of a checkpoint into safety.
class vote_ledger {
  public:
    struct outcome {
        bool complete = false;    ///< this vote was the last one missing
        bool replicated = false;  ///< and every rank has a second copy
    };
    /// Votes may come twice; a later "replicated" improves an earlier "local only". `world` > rank.
    outcome vote(const copy_key& key, std::uint32_t rank, bool replicated, std::uint32_t world);
    /// Forgets everything up to and including `key`.
    void settle(const copy_key& key) { tallies_.erase(tallies_.begin(), tallies_.upper_bound(key)); }
    void clear() { tallies_.clear(); }
    std::size_t open() const { return tallies_.size(); }
    /// The oldest checkpoint that lacks votes, and the ranks that have not voted. Precondition: open() != 0.
    std::pair<copy_key, std::vector<std::uint32_t>> missing() const;

  private:
    static constexpr std::size_t max_open = 32;  // beyond it the oldest can no longer matter
    struct tally {
        std::vector<std::uint8_t> state;  ///< 0 = none, 1 = local, 2 = replicated
        std::uint32_t voted = 0, replicated = 0;
    };
    std::map<copy_key, tally> tallies_;
};

}  // namespace banyan::ckpt
