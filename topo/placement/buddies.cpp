// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/buddies.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "topo/placement/partition.hpp"

namespace banyan::topo {
namespace {

/// What fails together, by the site file. A domain that holds the whole job nobody can leave: it is left out.
class domains {
  public:
    domains(const fabric& f, std::span<const std::uint32_t> nodes) : of_slot_(nodes.size()) {
        std::unordered_map<std::string_view, std::vector<std::uint32_t>> members;
        for (std::uint32_t slot = 0; slot < nodes.size(); ++slot)
            if (nodes[slot] < f.hosts.size())
                for (const auto& d : f.hosts[nodes[slot]].failure_domains) members[d].push_back(slot);
        std::uint32_t number = 0;
        for (const auto& [name, slots] : members) {
            if (slots.size() < nodes.size())
                for (const auto slot : slots) of_slot_[slot].push_back(number);
            ++number;
        }
    }
    bool none_at(std::size_t slot) const { return of_slot_[slot].empty(); }
    bool together(std::size_t a, std::size_t b) const {
        return std::any_of(of_slot_[a].begin(), of_slot_[a].end(), [&](auto d) {
            return std::find(of_slot_[b].begin(), of_slot_[b].end(), d) != of_slot_[b].end();
        });
    }

  private:
    std::vector<std::vector<std::uint32_t>> of_slot_;  ///< numbers
};

/// Lets slots whose buddy is in a failure domain of their own exchange it with another slot, where by that
/// no pair more stays in one leaf group. Looks at a bounded number of others for each.
void leave_failure_domains(const fabric& f, std::span<const std::uint32_t> nodes,
                           const std::vector<std::uint32_t>& group, std::vector<std::uint32_t>& buddies,
                           work& limit) {
    constexpr std::size_t looked_at = 256;
    constexpr std::int64_t steps = 8;  // four pairs, each with a few domains
    const auto n = nodes.size();
    const domains in(f, nodes);
    const auto badness = [&](std::size_t slot, std::uint32_t buddy) {
        return 2 * (group[slot] == group[buddy]) + in.together(slot, buddy);
    };
    for (std::size_t a = 0; a < n && limit.any(); ++a) {
        if (in.none_at(a)) continue;
        for (std::size_t step = 1; step < std::min(n, looked_at) && badness(a, buddies[a]) > 0; ++step) {
            const auto b = (a + step) % n;
            limit.spend(steps);
            if (buddies[a] == b || buddies[b] == a) continue;
            const auto now = badness(a, buddies[a]) + badness(b, buddies[b]);
            if (badness(a, buddies[b]) + badness(b, buddies[a]) < now) std::swap(buddies[a], buddies[b]);
        }
    }
}

}  // namespace

std::vector<std::uint32_t> choose_buddies(const fabric& f, std::span<const std::uint32_t> nodes,
                                          work& limit) {
    const auto n = nodes.size();
    const auto groups = static_cast<std::uint32_t>(f.leaf_groups.size()) + 1;  // the last: hosts without one
    std::vector<std::uint32_t> group(n), size(groups), by_size(groups), order(n), buddies(n);
    for (std::size_t slot = 0; slot < n; ++slot) {
        const auto g = nodes[slot] < f.hosts.size() ? f.hosts[nodes[slot]].leaf_group : none;
        group[slot] = std::min(g, groups - 1);
        ++size[group[slot]];
    }
    std::iota(by_size.begin(), by_size.end(), 0u);
    std::stable_sort(by_size.begin(), by_size.end(), [&](auto a, auto b) { return size[a] > size[b]; });
    auto place_of = by_size;
    for (std::uint32_t i = 0; i < groups; ++i) place_of[by_size[i]] = i;
    for (auto& g : group) g = place_of[g];
    std::iota(order.begin(), order.end(), 0u);
    order = sorted_by(order, group, groups);
    // With the groups side by side, a rotation by the largest group's size leads out of every group that is
    // at most half of all.
    std::size_t shift = size[by_size.front()];
    if (shift == n) shift = n / 2;
    for (std::size_t i = 0; i < n; ++i) buddies[order[i]] = order[(i + shift) % n];
    leave_failure_domains(f, nodes, group, buddies, limit);
    return buddies;
}

}  // namespace banyan::topo
