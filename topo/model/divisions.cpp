// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/divisions.hpp"

#include <algorithm>
#include <map>

#include <banyan/topo/tier.hpp>

namespace banyan::topo::build {
namespace {

/// One against the other.
class division {
  public:
    division(const leaf_by_host& a, const leaf_by_host& b) {
        for (std::size_t h = 0; h < a.size(); ++h) {
            if (a[h] == none || b[h] == none) continue;
            ++pairs_[a[h]][b[h]], ++of_b_[b[h]], ++hosts_;
        }
    }
    /// Whether most hosts are on leaves of `a` that have two leaves of `b` as a whole.
    bool joins() const {
        std::size_t joined = 0;
        for (const auto& [leaf, others] : pairs_) {
            std::size_t largest = 0, wholes = 0, all = 0;
            for (const auto& [other, n] : others) largest = std::max(largest, n), all += n;
            // A crossed cable or two make no leaf.
            for (const auto& [other, n] : others) wholes += 4 * n >= 3 * of_b_.at(other) && 2 * n >= largest;
            if (wholes >= 2) joined += all;
        }
        return 2 * joined >= hosts_ && hosts_ > 0;
    }
    /// Whether it says nothing of where `b` has its hosts.
    bool crosses() const {
        std::size_t told = 0;
        for (const auto& [leaf, others] : pairs_)
            told += std::max_element(others.begin(), others.end(), [](auto& x, auto& y) {
                        return x.second < y.second;
                    })->second;
        return 2 * told < hosts_;
    }

  private:
    std::map<std::uint32_t, std::map<std::uint32_t, std::size_t>> pairs_;
    std::map<std::uint32_t, std::size_t> of_b_;
    std::size_t hosts_ = 0;
};

}  // namespace

divides compare_divisions(const leaf_by_host& a, const leaf_by_host& b) {
    const division ab(a, b);
    if (ab.joins()) return divides::coarser;
    if (division(b, a).joins()) return divides::finer;
    return ab.crosses() ? divides::across : divides::alike;
}

}  // namespace banyan::topo::build
