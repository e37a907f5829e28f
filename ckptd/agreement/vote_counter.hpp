// SPDX-License-Identifier: BSD-3-Clause
//
// The leader's book of votes. Pure; two that count at once come to the same, or one of them to nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ckptd/agreement/messages.hpp"

namespace banyan::ckpt::agreement {

class vote_counter {
  public:
    explicit vote_counter(std::uint32_t world = 0) : world_(world) {}

    struct outcome {
        std::vector<commit> committed;
        std::vector<copy_key> passed_over;
        /// Decided before, and the voter has not heard of it.
        std::vector<body> known;
    };
    /// `base`: what the generation began from; it is voted for, too, when its second copies are made anew.
    outcome count(std::uint64_t generation, const std::optional<copy_key>& base, const vote& v);
    /// Steps without an outcome, ascending.
    std::vector<copy_key> open() const;
    /// The ranks that have not voted for it, ascending.
    std::vector<std::uint32_t> missing(const copy_key& key) const;

  private:
    static constexpr std::size_t most = 64;  // steps that are remembered; more than all buffers hold

    struct tally {
        std::vector<std::optional<level>> votes;
        std::uint32_t voted = 0, replicated = 0;
        bool decided = false, passed_over = false;
    };

    std::uint32_t world_;
    std::map<copy_key, tally> tallies_;
};

}  // namespace banyan::ckpt::agreement
