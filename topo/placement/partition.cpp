// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/partition.hpp"

#include <algorithm>

#include <banyan/topo/fabric.hpp>

namespace banyan::topo {

partition::partition(const std::vector<std::uint32_t>& key_of_slot, std::uint32_t keys,
                     const std::vector<std::uint32_t>& sequence)
    : set_of_slot_(key_of_slot.size()), slots_(key_of_slot.size()) {
    std::vector<std::uint32_t> number(keys, none);
    std::uint32_t sets = 0;
    for (const auto slot : sequence) {
        auto& n = number[key_of_slot[slot]];
        if (n == none) n = sets++;
        set_of_slot_[slot] = n;
    }
    first_.resize(sets + 1);
    for (const auto set : set_of_slot_) ++first_[set + 1];
    for (std::uint32_t s = 0; s < sets; ++s) first_[s + 1] += first_[s];
    auto next = first_;
    for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) slots_[next[set_of_slot_[slot]]++] = slot;
}

std::uint32_t partition::largest() const {
    std::uint32_t out = 0;
    for (std::uint32_t s = 0; s < size(); ++s) out = std::max(out, first_[s + 1] - first_[s]);
    return out;
}

std::vector<std::uint32_t> sorted_by(const std::vector<std::uint32_t>& sequence,
                                     const std::vector<std::uint32_t>& key_of_slot, std::uint32_t keys) {
    if (keys > sequence.size()) {  // a count of each would take longer than the rest
        auto out = sequence;
        std::stable_sort(out.begin(), out.end(),
                         [&](auto a, auto b) { return key_of_slot[a] < key_of_slot[b]; });
        return out;
    }
    std::vector<std::uint32_t> next(keys + 1), out(sequence.size());
    for (const auto slot : sequence) ++next[key_of_slot[slot] + 1];
    for (std::uint32_t k = 0; k < keys; ++k) next[k + 1] += next[k];
    for (const auto slot : sequence) out[next[key_of_slot[slot]]++] = slot;
    return out;
}

}  // namespace banyan::topo
