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

struct job_bytes {
    std::uint32_t stages, pipelines;
    double ring, cut;  ///< of a node on its ring; of a pipeline between two stages, both ways
};

double bound_of(std::vector<std::uint32_t> room, const job_bytes& j) {
    std::sort(room.rbegin(), room.rend());
    std::uint32_t touched = 0, held = 0;
    while (touched < room.size() && held < j.pipelines) held += room[touched++];
    if (touched > 1) return j.ring * j.stages * touched;
    double least = std::numeric_limits<double>::infinity();
    std::uint32_t whole = 0;
    for (std::size_t changes = 0; changes < room.size(); ++changes) {
        whole = std::min(j.stages, whole + room[changes] / j.pipelines);
        least = std::min(least, j.cut * j.pipelines * static_cast<double>(changes) +
                                    2 * j.ring * static_cast<double>(j.stages - whole));
    }
    return least;
}

}  // namespace

double counted_bound(const site& s, const test_case& c, const test::every_rank& job) {
    const auto bytes = weights_of(c.job);
    const job_bytes j{c.unit, c.job.nodes / c.unit,
                      bytes[dimension::dp] * static_cast<double>(job.leaving(0, dimension::dp)),
                      2 * bytes[dimension::pp] * static_cast<double>(job.leaving(0, dimension::pp))};
    double out = 0;
    for (const auto& l : levels_of(s)) {
        std::vector<std::uint32_t> room(l.places);
        for (const auto h : c.free) ++room[l.place_of_group[s.net.hosts[h].leaf_group]];
        out += l.weight * bound_of(std::move(room), j);
    }
    return out;
}

}  // namespace banyan::topo::quality
