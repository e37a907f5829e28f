// SPDX-License-Identifier: BSD-3-Clause
#include <deque>

#include "topo/model/build.hpp"

namespace banyan::topo::build {

/// A leaf has a host's HCA; every other switch is as high as its shortest way down to a leaf.
void find_levels(state& s) {
    constexpr std::uint8_t unknown = UINT8_MAX;
    std::vector<std::vector<std::uint32_t>> neighbours(s.out.switches.size());
    for (const auto& l : s.out.links) {
        if (l.a.kind != node_kind::switch_node || l.b.kind != node_kind::switch_node) continue;
        neighbours[l.a.index].push_back(l.b.index);
        neighbours[l.b.index].push_back(l.a.index);
    }
    for (auto& sw : s.out.switches) sw.level = unknown;
    std::deque<std::uint32_t> queue;
    for (const auto& h : s.out.hcas)
        if (h.host != none && h.leaf != none && s.out.switches[h.leaf].level == unknown) {
            s.out.switches[h.leaf].level = 0;
            queue.push_back(h.leaf);
        }
    while (!queue.empty()) {
        const auto at = queue.front();
        queue.pop_front();
        for (const auto next : neighbours[at])
            if (s.out.switches[next].level == unknown) {
                s.out.switches[next].level = static_cast<std::uint8_t>(s.out.switches[at].level + 1);
                queue.push_back(next);
            }
    }
}

}  // namespace banyan::topo::build
