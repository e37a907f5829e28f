// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include <banyan/topo/placement.hpp>
#include <fmt/format.h>

#include "topo/counted.hpp"

namespace banyan::topo {
namespace {

/// Replacements by what they are near to; the first of each is handed out first.
class waiting {
  public:
    waiting(const fabric& f, std::span<const std::uint32_t> hosts)
        : f_(f), hosts_(hosts), used_(hosts.size()), reach_(reach_of_hosts(f)) {
        for (std::size_t i = hosts.size(); i-- > 0;) {
            all_.push_back(i);
            if (const auto at = location_of(f, hosts[i]); at.known()) {
                in_group_[at.leaf_group].push_back(i);
                under_spine_[at.spine_group].push_back(i);
                in_reach_[reach_[hosts[i]]].push_back(i);
            } else {
                unknown_.push_back(i);
            }
        }
    }

    /// One that `host` meets at tier `within` or below: leaf, spine, or any that may be joined with it for
    /// wan. None where there is none.
    std::uint32_t take(std::uint32_t host, tier within) {
        const auto at = location_of(f_, host);
        if (!at.known()) return within < tier::wan ? none : take_of(all_);
        if (within == tier::leaf) return take_of(in_group_[at.leaf_group]);
        if (within == tier::spine) return take_of(under_spine_[at.spine_group]);
        const auto joined = take_of(in_reach_[reach_[host]]);
        return joined == none ? take_of(unknown_) : joined;
    }

  private:
    std::uint32_t take_of(std::vector<std::size_t>& from) {
        while (!from.empty() && used_[from.back()]) from.pop_back();
        if (from.empty()) return none;
        used_[from.back()] = true;
        return hosts_[from.back()];
    }

    const fabric& f_;
    std::span<const std::uint32_t> hosts_;
    std::vector<bool> used_;
    std::vector<std::uint32_t> reach_;        ///< by host
    std::vector<std::size_t> all_, unknown_;  ///< the next one last
    std::unordered_map<std::uint32_t, std::vector<std::size_t>> in_group_, under_spine_, in_reach_;
};

}  // namespace

result<placement> swap(const fabric& f, const placement& before, std::span<const std::uint32_t> lost,
                       std::span<const std::uint32_t> replacements) {
    if (replacements.size() < lost.size())
        return fail(errc::exhausted,
                    fmt::format("{} nodes are lost, {} can replace them", lost.size(), replacements.size()));
    auto after = before;
    const std::unordered_set<std::uint32_t> gone(lost.begin(), lost.end());
    waiting nodes(f, replacements);
    std::vector<std::uint32_t> open;  // slots without a node
    for (std::uint32_t slot = 0; slot < before.nodes.size(); ++slot)
        if (gone.contains(before.nodes[slot])) open.push_back(slot);
    // The near pairs first, so that no slot takes the only neighbour of another.
    for (const auto within : {tier::leaf, tier::spine, tier::wan})
        std::erase_if(open, [&](std::uint32_t slot) {
            const auto node = nodes.take(before.nodes[slot], within);
            if (node != none) after.nodes[slot] = node;
            return node != none;
        });
    if (!open.empty())
        return fail(errc::exhausted, fmt::format("{} have no node that the fabric joins with theirs",
                                                 counted(open.size(), "slot")));
    const std::unordered_set<std::uint32_t> in_use(after.nodes.begin(), after.nodes.end());
    std::erase_if(after.spares, [&](auto host) { return in_use.contains(host) || gone.contains(host); });
    return after;
}

result<placement> swap_onto(const fabric& f, const placement& before, std::span<const std::uint32_t> hosts) {
    const std::unordered_set<std::uint32_t> there(hosts.begin(), hosts.end()),
        used(before.nodes.begin(), before.nodes.end());
    std::vector<std::uint32_t> lost, fresh;
    std::copy_if(before.nodes.begin(), before.nodes.end(), std::back_inserter(lost),
                 [&](auto host) { return !there.contains(host); });
    std::copy_if(hosts.begin(), hosts.end(), std::back_inserter(fresh),
                 [&](auto host) { return !used.contains(host); });
    if (lost.empty()) return before;
    return swap(f, before, lost, fresh);
}

}  // namespace banyan::topo
