// SPDX-License-Identifier: BSD-3-Clause
//
// Slots in disjoint sets (units, rings, ...).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace banyan::topo {

class partition {
  public:
    partition() = default;
    /// Slots with the same key, below `keys`, are a set. Sets are numbered in the order in which `sequence`,
    /// which has each slot once, meets them.
    partition(const std::vector<std::uint32_t>& key_of_slot, std::uint32_t keys,
              const std::vector<std::uint32_t>& sequence);

    /// Sets, none of them empty.
    std::uint32_t size() const { return static_cast<std::uint32_t>(first_.size()) - 1; }
    /// The slots of a set, ascending.
    std::span<const std::uint32_t> operator[](std::uint32_t set) const {
        return std::span(slots_).subspan(first_[set], first_[set + 1] - first_[set]);
    }
    /// Slots in the largest set.
    std::uint32_t largest() const;
    /// All slots, set after set.
    const std::vector<std::uint32_t>& slots() const { return slots_; }
    const std::vector<std::uint32_t>& set_of_slot() const { return set_of_slot_; }

  private:
    std::vector<std::uint32_t> set_of_slot_, slots_;
    std::vector<std::uint32_t> first_{0};  ///< by set: where its slots begin; and the end
};

/// `sequence` sorted by key, each below `keys`; stable.
std::vector<std::uint32_t> sorted_by(const std::vector<std::uint32_t>& sequence,
                                     const std::vector<std::uint32_t>& key_of_slot, std::uint32_t keys);

}  // namespace banyan::topo
