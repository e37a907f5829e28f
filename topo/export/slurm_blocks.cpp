// SPDX-License-Identifier: BSD-3-Clause
#include "topo/export/slurm_blocks.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include <fmt/format.h>

namespace banyan::topo {
namespace {

/// Slurm keeps sixteen levels of blocks.
constexpr std::uint32_t most_doublings = 15;

/// How many blocks each spine group has, where it is the same power of two for all but the last; else 0.
std::uint32_t blocks_under_a_spine(const slurm_topology& topology) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> count;
    for (const auto& leaf : topology.leaves) ++count[{leaf.island, leaf.spine_group}];
    const auto first = count.begin()->second;
    if (count.size() < 2 || !std::has_single_bit(first) || first > (1u << most_doublings)) return 0;
    for (auto at = count.begin(); at != count.end(); ++at)
        if (std::next(at) == count.end() ? at->second > first : at->second != first) return 0;
    return first;
}

result<void> check(const std::vector<std::uint32_t>& sizes) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const auto times = sizes[0] ? sizes[i] / sizes[0] : 0;
        const bool fits = times > 0 && sizes[i] % sizes[0] == 0 && std::has_single_bit(times) &&
                          times <= (1u << most_doublings) && (i == 0 || sizes[i] > sizes[i - 1]);
        if (!fits)
            return fail(errc::invalid_input,
                        fmt::format("--block-size {}: Slurm takes the base size first, then rising sizes of "
                                    "2, 4, 8, ... times that",
                                    sizes[i]),
                        sizes[0] ? fmt::format("for example --block-size {},{}", sizes[0],
                                               std::uint64_t{sizes[0]} * 2)
                                 : "a block has at least one node");
    }
    return {};
}

}  // namespace

result<void> choose_block_sizes(slurm_topology& topology, const std::vector<std::uint32_t>& wanted) {
    const auto [smallest, largest] =
        std::minmax_element(topology.leaves.begin(), topology.leaves.end(),
                            [](const auto& a, const auto& b) { return a.nodes.size() < b.nodes.size(); });
    const auto least = static_cast<std::uint32_t>(smallest->nodes.size());
    topology.block_sizes = wanted;
    if (wanted.empty()) {
        topology.block_sizes = {least};
        if (const auto blocks = blocks_under_a_spine(topology); blocks > 1)
            topology.block_sizes.push_back(least * blocks);
        if (smallest->nodes.size() != largest->nodes.size())
            topology.notes.push_back(
                fmt::format("Blocks have {} ({}) to {} nodes ({}); BlockSizes goes by the smallest. "
                            "--block-size sets another.",
                            least, smallest->name, largest->nodes.size(), largest->name));
    }
    BANYAN_CHECK(check(topology.block_sizes));
    if (topology.block_sizes.front() > least)
        topology.notes.push_back(
            fmt::format("Block {} has {} nodes, fewer than {}: Slurm 23.11 to 24.11 refuse this file.",
                        smallest->name, least, topology.block_sizes.front()));
    return {};
}

}  // namespace banyan::topo
