// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "topo/model/build.hpp"

namespace banyan::topo::build {

/// A leaf has an HCA of a host or of storage; every other switch is as high as its shortest way down to a
/// leaf. Decided on the whole fabric, so a leaf stays one whoever uses it.
void find_levels(state& s) {
    auto& f = s.out;
    constexpr std::uint8_t unknown = UINT8_MAX;
    std::vector<std::vector<std::uint32_t>> neighbours(f.switches.size());
    for (auto& sw : f.switches) sw.level = unknown;
    std::vector<std::uint32_t> queue;
    for (const auto& l : f.links) {
        if (l.a.kind == node_kind::switch_node && l.b.kind == node_kind::switch_node) {
            neighbours[l.a.index].push_back(l.b.index);
            neighbours[l.b.index].push_back(l.a.index);
            continue;
        }
        const auto& [hca_end, switch_end] =
            l.a.kind == node_kind::hca ? std::pair(l.a, l.b) : std::pair(l.b, l.a);
        if (switch_end.kind != node_kind::switch_node || !s.below_leaf[hca_end.index]) continue;
        if (f.switches[switch_end.index].level == 0) continue;
        f.switches[switch_end.index].level = 0;
        queue.push_back(switch_end.index);
    }
    std::sort(queue.begin(), queue.end());
    for (std::size_t at = 0; at < queue.size(); ++at)
        for (const auto next : neighbours[queue[at]])
            if (f.switches[next].level == unknown) {
                // A chain longer than any fabric must not count round to `unknown`.
                f.switches[next].level =
                    static_cast<std::uint8_t>(std::min(f.switches[queue[at]].level + 1, unknown - 1));
                queue.push_back(next);
            }
}

}  // namespace banyan::topo::build
