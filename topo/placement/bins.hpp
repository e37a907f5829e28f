// SPDX-License-Identifier: BSD-3-Clause
//
// The free hosts by leaf group: the bins that the slots of a job are packed into, and how far they are from
// each other.
#pragma once

#include <span>
#include <vector>

#include <banyan/topo/placement.hpp>
#include <banyan/topo/tier.hpp>

namespace banyan::topo {

/// The free hosts of one leaf group, in the order in which they are taken; where hosts share NVLink, those of
/// one domain in it.
struct bin {
    std::uint32_t number = 0;  ///< for a caller that reorders them
    /// Of each of its hosts. Where hosts share NVLink one level lower: its own number for the leaf group, and
    /// the leaf group for the spine group.
    location at;
    location where;               ///< of each of its hosts
    std::uint32_t preferred = 0;  ///< of its hosts
    std::span<const std::uint32_t> hosts;
    std::uint32_t size = 0;   ///< how many hosts
    std::uint32_t items = 0;  ///< whole items that it is to hold (pack)
    std::size_t taken = 0;    ///< hosts that are given to slots

    std::size_t left() const { return size - taken; }
    std::uint32_t take() { return hosts[taken++]; }
};

/// Bins, and the hosts that they look into. Moved, not copied.
struct free_bins {
    std::vector<std::uint32_t> hosts;
    std::vector<bin> bins;

    free_bins() = default;
    free_bins(free_bins&&) = default;
    free_bins& operator=(free_bins&&) = default;
};

/// Of hosts whose own links are sound, and one that leads up from their leaves is not.
inline constexpr float below_a_bad_link = 0.25f;

/// 0 (sound) to 1; a host that lacks rails, or has a slow one, is not sound, whatever `risk` says, nor is one
/// below an unsound link. `risk` as in candidates.
float risk_of(const fabric& f, std::span<const float> risk, std::uint32_t host);

/// Preferred hosts first, those with a high from.risk last. A host without a leaf group is near nobody: a
/// bin of its own.
free_bins make_bins(const fabric& f, const candidates& from);

/// What a byte costs between hosts of two bins, by their indices; within one it is free. Every byte
/// between hosts without NVLink costs the leaf's price, which is left out.
class bin_distances {
  public:
    bin_distances(const fabric& f, const std::vector<bin>& bins) : cost_(f.tier_cost) {
        for (const auto& b : bins) at_.push_back(b.where);
    }
    double operator()(std::uint32_t a, std::uint32_t b) const {
        if (a == b) return 0;
        const bool plain = at_[a].nvlink == none && at_[b].nvlink == none;
        return cost_[tier_between(at_[a], at_[b])] - (plain ? cost_[tier::leaf] : 0);
    }

  private:
    std::vector<location> at_;
    by_tier<double> cost_;
};

}  // namespace banyan::topo
