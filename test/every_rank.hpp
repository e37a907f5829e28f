// SPDX-License-Identifier: BSD-3-Clause
//
// What a job sends, by brute force: from every rank to every rank that it sends to, one by one. The measure
// of the benchmark and the tests, so it shares no code with the communication graph or the objective; only
// which ranks a slot has (ranks_of_slots) and what one send weighs (traffic.hpp) are placement's.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <banyan/topo/placement.hpp>
#include <banyan/topo/traffic.hpp>

namespace banyan::topo::test {

struct rank_send {
    std::uint32_t from = 0, to = 0;  ///< ranks
    dimension along = dimension::tp;
};

struct measured {
    double weighted = 0;      ///< weights_of times fabric::tier_cost
    by_tier<double> bytes{};  ///< of the request's model, or of the default one
    /// Slots that pipelines or tensor groups join, and of them those in more than one leaf group.
    std::uint32_t units = 0, straddling = 0;
    std::uint32_t spread = 0;  ///< leaf groups that one process group touches, at most
    /// On the busiest rail of a leaf group, upwards. A rank's rail is its place among its slot's ranks.
    double busiest_rail = 0;

    double above_leaf() const { return bytes[tier::spine] + bytes[tier::core] + bytes[tier::wan]; }
    double core() const { return bytes[tier::core] + bytes[tier::wan]; }
};

/// A job, rank by rank. Cost of all of it: O(ranks x members of a group).
class every_rank {
  public:
    explicit every_rank(const request& r);

    /// tp, cp, dp: to the next of the ring. pp: to the stages before and after. ep: to everybody else.
    const std::vector<rank_send>& sends() const { return sends_; }
    std::uint32_t slot_of(std::uint32_t rank) const { return slot_of_[rank]; }
    /// How many sends go between two different slots, both ways together; the lower slot first.
    std::map<std::pair<std::uint32_t, std::uint32_t>, by_dimension<std::uint64_t>> between_slots() const;
    /// Sends along `d` from the ranks of a slot to other slots.
    std::uint64_t leaving(std::uint32_t slot, dimension d) const;
    /// Slot -> a slot of its unit, the same for all of them.
    const std::vector<std::uint32_t>& unit_of_slot() const { return unit_of_; }
    /// Every host of `p` is in a leaf group.
    measured on(const fabric& f, const placement& p) const;

  private:
    void add_sends_of(std::uint32_t rank);
    void add_to_groups(std::uint32_t rank);
    void join_units();

    request asked_;
    std::vector<std::uint32_t> slot_of_, place_;  ///< of each rank; its place among its slot's ranks
    std::vector<rank_send> sends_;
    std::vector<std::uint32_t> unit_of_;
    struct member {
        dimension along;
        std::uint32_t first_rank;  ///< of the process group
        std::uint32_t slot;
        auto operator<=>(const member&) const = default;
    };
    std::vector<member> members_;  ///< of all process groups, each slot once
};

}  // namespace banyan::topo::test
