// SPDX-License-Identifier: BSD-3-Clause
//
// Which ranks send to each other, for whoever counts what they send.
#pragma once

#include <banyan/topo/shape.hpp>

namespace banyan::topo {

/// Distance of two neighbours along `d` in rank order.
inline std::uint32_t stride_of(const shape& dims, dimension d) {
    std::uint32_t stride = 1;
    for (const auto& e : dims.order) {
        if (e.dim == d) break;
        stride *= e.size;
    }
    return stride;
}

/// Calls `visit(from, to)` for every pair of ranks that traffic_of has an edge for: neighbours on the ring
/// (tp, cp, dp), either neighbour of a pipeline (pp), every other member (ep).
template <class Visit>
void each_send(const shape& dims, dimension d, Visit visit) {
    const auto stride = stride_of(dims, d), size = dims.size(d), ranks = dims.ranks();
    if (size < 2) return;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const auto at = rank / stride % size;
        const auto member = [&](std::uint32_t i) { return rank - at * stride + i * stride; };
        if (d == dimension::ep) {
            for (std::uint32_t i = 0; i < size; ++i)
                if (i != at) visit(rank, member(i));
        } else if (d == dimension::pp) {
            if (at > 0) visit(rank, member(at - 1));
            if (at + 1 < size) visit(rank, member(at + 1));
        } else {
            visit(rank, member((at + 1) % size));
        }
    }
}

}  // namespace banyan::topo
