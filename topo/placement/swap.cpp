// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/placement.hpp>
#include <fmt/format.h>

namespace banyan::topo {
namespace {

/// 0 = the same leaf group, 1 = under the same spines, 2 = anywhere.
int distance(const fabric& f, std::uint32_t a, std::uint32_t b) {
    const auto group = [&](std::uint32_t host) {
        return host < f.hosts.size() ? f.hosts[host].leaf_group : none;
    };
    const auto ga = group(a), gb = group(b);
    if (ga == none || gb == none) return 2;
    if (ga == gb) return 0;
    return f.leaf_groups[ga].spine_group == f.leaf_groups[gb].spine_group ? 1 : 2;
}

}  // namespace

result<placement> swap(const fabric& f, const placement& before, std::span<const std::uint32_t> lost,
                       std::span<const std::uint32_t> replacements) {
    if (replacements.size() < lost.size())
        return fail(errc::exhausted,
                    fmt::format("{} nodes are lost, {} can replace them", lost.size(), replacements.size()));
    auto after = before;
    std::vector<bool> used(replacements.size());
    std::vector<std::uint32_t> open;  // slots without a node
    for (std::uint32_t slot = 0; slot < before.nodes.size(); ++slot)
        if (std::find(lost.begin(), lost.end(), before.nodes[slot]) != lost.end()) open.push_back(slot);
    // The near pairs first, so that no slot takes the only neighbour of another.
    for (int reach = 0; reach <= 2; ++reach)
        std::erase_if(open, [&](std::uint32_t slot) {
            for (std::size_t i = 0; i < replacements.size(); ++i) {
                if (used[i] || distance(f, before.nodes[slot], replacements[i]) > reach) continue;
                used[i] = true;
                after.nodes[slot] = replacements[i];
                return true;
            }
            return false;
        });
    if (!open.empty()) return fail(errc::exhausted, fmt::format("{} slots have no node", open.size()));
    std::erase_if(after.spares, [&](auto host) {
        return std::find(after.nodes.begin(), after.nodes.end(), host) != after.nodes.end() ||
               std::find(lost.begin(), lost.end(), host) != lost.end();
    });
    return after;
}

}  // namespace banyan::topo
