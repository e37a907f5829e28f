// SPDX-License-Identifier: BSD-3-Clause
//
// What one placement costs.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "test/bench/placement_quality.hpp"

namespace banyan::topo::quality {

verdict judge(const site& s, const test_case& c, const placement& p) {
    const auto cost = cost_of(s.net, c.job, p);
    const auto sits = spread_of(s.net, c.job, p);
    verdict v;
    v.weighted = cost.weighted;
    v.above_leaf = cost.above_leaf();
    v.core = cost.bytes[tier::core] + cost.bytes[tier::wan];
    v.busiest_uplink = cost.busiest_uplink;
    v.straddling = sits.straddling_units;
    v.units = sits.units;
    for (const auto& d : cost.dimensions) v.spread = std::max(v.spread, d.largest_spread);
    std::vector<std::uint32_t> left(s.net.leaf_groups.size());
    for (const auto h : c.free) ++left[s.net.hosts[h].leaf_group];
    std::set<std::uint32_t> touched;
    for (const auto h : p.nodes) {
        --left[s.net.hosts[h].leaf_group];
        touched.insert(s.net.hosts[h].leaf_group);
    }
    for (const auto g : touched) v.wasted += left[g] % c.unit;
    return v;
}

}  // namespace banyan::topo::quality
