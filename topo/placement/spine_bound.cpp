// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/spine_bound.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include <banyan/topo/traffic.hpp>

#include "topo/placement/communication.hpp"

namespace banyan::topo {
namespace {

constexpr dimension between_units[] = {dimension::cp, dimension::ep, dimension::dp};

/// Leaf groups that so many hosts need at least, were all of them free.
std::size_t least_groups(const fabric& f, std::uint32_t nodes) {
    std::vector<std::size_t> sizes;
    for (const auto& g : f.leaf_groups) sizes.push_back(g.hosts.size());
    std::sort(sizes.rbegin(), sizes.rend());
    std::size_t groups = 0, reach = 0;
    while (groups < sizes.size() && reach < nodes) reach += sizes[groups++];
    return groups;
}

/// Units that a process group along `d` goes through: of the first one, since in a grid all are alike.
std::uint32_t units_along(const shape& dims, dimension d, const std::vector<std::uint32_t>& unit_of_rank) {
    std::vector<std::uint32_t> units;
    for (std::uint32_t i = 0; i < dims.size(d); ++i) units.push_back(unit_of_rank[i * stride_of(dims, d)]);
    std::sort(units.begin(), units.end());
    return static_cast<std::uint32_t>(std::unique(units.begin(), units.end()) - units.begin());
}

}  // namespace

double least_over_spines(const fabric& f, const request& r, const job_slots& job,
                         const std::vector<std::uint32_t>& slot_of_rank) {
    const auto groups = least_groups(f, r.nodes);
    if (groups < 2) return 0;
    std::vector<std::uint32_t> unit_of_rank;
    for (const auto slot : slot_of_rank) unit_of_rank.push_back(job.units().set_of_slot()[slot]);
    const auto bytes = traffic_of(r.dims, r.model.value_or(model_size{}));
    const auto units = job.units().size();
    const double ranks = static_cast<double>(r.dims.ranks()) / units;  // of a unit
    // Along each dimension the units that its groups go through, and what one unit sends to others there.
    std::vector<std::pair<std::uint32_t, double>> factors;
    std::uint64_t grid = 1;
    for (const auto d : between_units) {
        const auto along = r.dims.size(d) > 1 ? units_along(r.dims, d, unit_of_rank) : 1;
        if (along < 2) continue;
        grid *= along;
        const double members = static_cast<double>(r.dims.size(d)) / along;
        const double to = pattern_of(d) == pattern::all_to_all ? members * (r.dims.size(d) - members) : 1;
        factors.emplace_back(along, ranks / members * to * bytes[d]);
    }
    if (grid != units || factors.empty()) return 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t whole = 0; whole + 1 < 1u << factors.size(); ++whole) {
        double inside = 1, out = 0;
        for (std::size_t i = 0; i < factors.size(); ++i)
            if (whole >> i & 1)
                inside *= factors[i].first;
            else
                out += factors[i].second;
        least = std::min(least, inside * out);
    }
    return std::min<double>(static_cast<double>(groups), units) * least;
}

}  // namespace banyan::topo
