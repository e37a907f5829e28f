// SPDX-License-Identifier: BSD-3-Clause
//
// The bound by counting. With S stages (of the nodes that stages share), P pipelines, and places of so many
// free hosts: where no place holds P, each of the S rings touches as many as hold P at least, and leaves each
// of them once. Where one does, a stage is whole in one place or its ring leaves two at least; and between
// whole stages at different places all P pipelines cross. So with y such changes the whole stages lie in y +
// 1 places at most; the best y gives the bound.
#include <algorithm>
#include <limits>

#include "test/bench/placement_quality.hpp"

namespace banyan::topo::quality {
namespace {

double bound_of(std::vector<std::uint32_t> room, const job_grid& j, double ring, double cut) {
    std::sort(room.rbegin(), room.rend());
    std::uint32_t touched = 0, held = 0;
    while (touched < room.size() && held < j.pipelines) held += room[touched++];
    if (touched > 1) return ring * j.stages * touched;
    double least = std::numeric_limits<double>::infinity();
    std::uint32_t whole = 0;
    for (std::size_t changes = 0; changes < room.size(); ++changes) {
        whole = std::min(j.stages, whole + room[changes] / j.pipelines);
        least = std::min(least, cut * j.pipelines * static_cast<double>(changes) +
                                    2 * ring * static_cast<double>(j.stages - whole));
    }
    return least;
}

}  // namespace

std::optional<job_grid> grid_of(const request& r, const counted_job& job) {
    const auto& dims = r.dims;
    const auto tp = dims.size(dimension::tp), pp = dims.size(dimension::pp), dp = dims.size(dimension::dp);
    if (tp * pp * dp != dims.ranks() || r.ranks_per_node % tp != 0) return std::nullopt;
    const auto a_node = r.ranks_per_node / tp;  // tensor groups
    std::vector<dimension> order;
    for (const auto& e : dims.order)
        if (e.size > 1) order.push_back(e.dim);
    if (tp > 1 && order.front() != dimension::tp) return std::nullopt;
    const bool stages_first = order.back() == dimension::dp && pp > 1;
    if ((stages_first ? pp : dp) % a_node != 0) return std::nullopt;
    job_grid out{stages_first ? pp / a_node : pp, stages_first ? dp : dp / a_node, job.leaving(dimension::dp),
                 job.leaving(dimension::pp)};
    // All stages but the last send on, all but the first back.
    if (out.stages > 1)
        for (auto& bytes : out.cut) bytes *= static_cast<double>(out.stages) / (out.stages - 1);
    return out;
}

double counted_bound(const site& s, const test_case& c, const job_grid& job, double ring, double cut) {
    double out = 0;
    for (const auto& l : levels_of(s)) {
        std::vector<std::uint32_t> room(l.places);
        for (const auto h : c.free) ++room[l.place_of_group[s.net.hosts[h].leaf_group]];
        out += l.weight * bound_of(std::move(room), job, ring, cut);
    }
    return out;
}

}  // namespace banyan::topo::quality
