// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <boost/pending/disjoint_sets.hpp>

namespace banyan::topo::build {

/// Disjoint sets of 0..n-1, by Boost, where a set goes by its smallest member: so the answer does not depend
/// on the order of the joins.
class union_find {
  public:
    explicit union_find(std::size_t n) : rank_(n), parent_(n), sets_(rank_.data(), parent_.data()) {
        std::iota(parent_.begin(), parent_.end(), 0u);
    }
    union_find(const union_find&) = delete;
    union_find& operator=(const union_find&) = delete;

    void join(std::uint32_t a, std::uint32_t b) { sets_.union_set(a, b); }

    /// The smallest member of the set of each. Once, after all joins.
    std::vector<std::uint32_t> smallest() {
        std::vector<std::uint32_t> all(parent_.size());
        std::iota(all.begin(), all.end(), 0u);
        sets_.compress_sets(all.begin(), all.end());
        sets_.normalize_sets(all.begin(), all.end());
        return std::move(parent_);
    }

  private:
    std::vector<std::uint32_t> rank_, parent_;
    boost::disjoint_sets<std::uint32_t*, std::uint32_t*> sets_;
};

}  // namespace banyan::topo::build
