// SPDX-License-Identifier: BSD-3-Clause
//
// The links between two levels of switches, and the blocks that they make: upper switches that lead to the
// same lower ones. A dump may claim any graph, so what compares switches with each other looks at a sample
// where all pairs would be too many.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <banyan/topo/fabric.hpp>

namespace banyan::topo::build {

/// Links from one upper switch to `low`.
struct edge {
    std::uint32_t low, links;
};

/// Links between one level and the next: for each upper switch its lowers, ascending. Flat, since a large
/// fabric has hundreds of thousands.
struct mesh {
    std::vector<std::uint32_t> uppers;  ///< switches, ascending
    std::vector<std::size_t> first;     ///< of the edges of each upper, and one past the last
    std::vector<edge> edges;
    std::vector<std::uint32_t> all_lowers;

    std::span<const edge> edges_of(std::size_t upper) const {
        return std::span(edges).subspan(first[upper], first[upper + 1] - first[upper]);
    }
};

/// By the level of the lower switches.
std::vector<mesh> meshes_of(const fabric& f);

using block = std::vector<std::size_t>;  ///< uppers, as positions in mesh::uppers

/// Uppers that lead mostly to the same lowers.
std::vector<block> blocks_of(const mesh& m);

/// The lowers that belong to each block, ascending. A lower may belong to several (a spine under several
/// planes of cores); a cable or two to one of them are a mistake, not membership.
std::vector<std::vector<std::uint32_t>> lowers_of_blocks(const mesh& m, const std::vector<block>& blocks);

}  // namespace banyan::topo::build
