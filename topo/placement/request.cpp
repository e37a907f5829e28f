// SPDX-License-Identifier: BSD-3-Clause
//
// From a shape to slots and units: arithmetic on ranks, nothing of the fabric.
#include <banyan/topo/placement.hpp>
#include <fmt/format.h>

#include "topo/counted.hpp"
#include "topo/placement/job_slots.hpp"

namespace banyan::topo {
result<request> make_request(const shape& dims, std::uint32_t total_nodes, std::uint32_t ranks_per_node,
                             std::uint32_t spares) {
    const auto ranks = dims.ranks();
    if (total_nodes <= spares)
        return fail(errc::invalid_input,
                    fmt::format("{} with {} leave none to run on", counted(total_nodes, "node"),
                                counted(spares, "spare")),
                    fmt::format("ask for -N {} or more", spares + 1));
    const auto nodes = total_nodes - spares;
    if (ranks_per_node == 0 && ranks % nodes != 0)
        return fail(errc::invalid_input,
                    fmt::format("{} ({}) does not divide over {}", dims.text(), counted(ranks, "rank"),
                                counted(nodes, "node")),
                    "choose a number of nodes that divides the ranks, plus the spares");
    if (ranks_per_node == 0) ranks_per_node = ranks / nodes;
    if (ranks_per_node > max_ranks_per_node)
        return fail(errc::invalid_input,
                    fmt::format("{} ({} ranks) on {} nodes is {} ranks on each, more than {}", dims.text(),
                                ranks, nodes, ranks_per_node, max_ranks_per_node),
                    "ask for more nodes, or for fewer ranks");
    if (std::uint64_t{nodes} * ranks_per_node != ranks) {
        const auto hint = ranks % ranks_per_node == 0
                              ? fmt::format("ask for -N {}{}", ranks / ranks_per_node + spares,
                                            spares ? " (spares included)" : "")
                              : fmt::format("{} tasks a node do not divide {} ranks", ranks_per_node, ranks);
        return fail(
            errc::invalid_input,
            fmt::format("--train-parallel={} is {} ranks, but {} nodes with {} tasks each are {}",
                        dims.text(), ranks, nodes, ranks_per_node, std::uint64_t{nodes} * ranks_per_node),
            hint);
    }
    return request{dims, nodes, ranks_per_node, spares, std::nullopt, false};
}

std::vector<std::vector<std::uint32_t>> ranks_of_slots(const request& r) {
    const auto flat = job_slots(r).ranks_by_slot();
    std::vector<std::vector<std::uint32_t>> out;
    out.reserve(r.nodes);
    for (auto at = flat.begin(); at != flat.end(); at += r.ranks_per_node)
        out.emplace_back(at, at + r.ranks_per_node);
    return out;
}

bool ranks_are_consecutive(const request& r) {
    // Slots are in the order of their first ranks: where these are right, nothing is left for another slot.
    const job_slots job(r);
    for (std::uint32_t slot = 0; slot < job.count(); ++slot)
        if (job.first_rank(slot) != slot * r.ranks_per_node) return false;
    return true;
}

std::vector<std::uint32_t> units_of_slots(const request& r) { return job_slots(r).units().set_of_slot(); }

}  // namespace banyan::topo
