// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/culprits.hpp"

namespace banyan::topo::build {

culprits::culprits(std::size_t switches, const std::vector<gap>& gaps)
    : gaps_(gaps), explained_(gaps.size()), left_(switches) {
    for (std::size_t i = 0; i < gaps.size(); ++i) {
        of_low_[gaps[i].low].push_back(i);
        of_high_[gaps[i].high].push_back(i);
    }
    for (const auto& [sw, list] : of_low_) left_[sw] = list.size();
    for (const auto& [sw, list] : of_high_) left_[sw] = list.size();
}

std::optional<culprits::culprit> culprits::next() {
    const auto low = most(of_low_), high = most(of_high_);
    if (low == none) return {};
    culprit out;
    out.upper = left_[high] > left_[low];
    out.sw = out.upper ? high : low;
    for (const auto i : out.upper ? of_high_[high] : of_low_[low]) {
        if (explained_[i]) continue;
        explained_[i] = true;
        --left_[gaps_[i].low];
        --left_[gaps_[i].high];
        out.gaps.push_back(gaps_[i]);
    }
    return out;
}

std::uint32_t culprits::most(const by_switch& all) const {
    std::uint32_t out = none;
    for (const auto& [sw, list] : all)
        if (left_[sw] > (out == none ? 0 : left_[out])) out = sw;
    return out;
}

}  // namespace banyan::topo::build
