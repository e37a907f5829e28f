// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/placement/joined_nodes.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <banyan/topo/tier.hpp>

namespace banyan::slurm {

std::vector<bitmap> joined_nodes(const fabric_cache::view& fabric, const bitstr_t* candidates) {
    auto* const all = const_cast<bitstr_t*>(candidates);
    std::vector<bitmap> out;
    const auto reach = topo::reach_of_hosts(fabric.fabric);
    std::set<std::uint32_t> pieces(reach.begin(), reach.end());
    pieces.erase(topo::none);
    if (pieces.size() < 2) {
        out.emplace_back(bit_copy(all));
        return out;
    }
    std::map<std::uint32_t, bitmap> parts;
    for (const int node : set_bits(candidates)) {
        const auto host = fabric.map.host_of(node);
        auto& part = parts[host == host_map::no_host ? topo::none : reach[host]];
        if (!part) part.reset(bit_alloc(bit_size(all)));
        bit_set(part.get(), node);
    }
    for (auto& [number, part] : parts) out.push_back(std::move(part));
    std::ranges::stable_sort(out, [](const bitmap& a, const bitmap& b) {
        return bit_set_count(a.get()) > bit_set_count(b.get());
    });
    return out;
}

}  // namespace banyan::slurm
