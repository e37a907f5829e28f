// SPDX-License-Identifier: BSD-3-Clause
//
// Who sends to whom: the one place that knows. Counted from rank to rank (each_send), or from slot to slot in
// the communication graph.
#pragma once

#include <banyan/topo/placement.hpp>

namespace banyan::topo {

/// How the members of one process group send to each other.
enum class pattern {
    ring,       ///< each to the next, the last to the first
    line,       ///< each to both neighbours
    all_to_all  ///< each to every other
};
inline pattern pattern_of(const request& r, dimension d) {
    if (d == dimension::pp) return pattern::line;
    const bool to_all = d == dimension::ep ||
                        (d == dimension::cp && r.model.value_or(model_size{}).cp == cp_scheme::all_to_all);
    return to_all ? pattern::all_to_all : pattern::ring;
}
/// Sends between two members that have to do with each other, both directions together.
constexpr std::uint32_t sends_of_pair(pattern p) { return p == pattern::ring ? 1 : 2; }

/// Calls `visit(other)` for each of the `size` members that `member` sends to.
template <class Visit>
void each_target(pattern p, std::uint32_t member, std::uint32_t size, Visit visit) {
    if (p == pattern::ring) {
        visit((member + 1) % size);
    } else if (p == pattern::line) {
        if (member > 0) visit(member - 1);
        if (member + 1 < size) visit(member + 1);
    } else {
        for (std::uint32_t other = 0; other < size; ++other)
            if (other != member) visit(other);
    }
}

/// The same, but what goes both ways is visited from the lower member only: each pair once, with
/// sends_of_pair.
template <class Visit>
void each_pair(pattern p, std::uint32_t member, std::uint32_t size, Visit visit) {
    each_target(p, member, size, [&](std::uint32_t other) {
        if (p == pattern::ring || other > member) visit(other);
    });
}

/// Distance of two neighbours along `d` in rank order.
inline std::uint32_t stride_of(const shape& dims, dimension d) {
    std::uint32_t stride = 1;
    for (const auto& e : dims.order) {
        if (e.dim == d) break;
        stride *= e.size;
    }
    return stride;
}

/// Calls `visit(from, to)` for every pair of ranks that traffic_of has an edge for.
template <class Visit>
void each_send(const request& r, dimension d, Visit visit) {
    const auto& dims = r.dims;
    const auto stride = stride_of(dims, d), size = dims.size(d), ranks = dims.ranks();
    if (size < 2) return;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const auto at = rank / stride % size, first = rank - at * stride;
        each_target(pattern_of(r, d), at, size,
                    [&](std::uint32_t other) { visit(rank, first + other * stride); });
    }
}

}  // namespace banyan::topo
