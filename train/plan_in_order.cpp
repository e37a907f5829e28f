// SPDX-License-Identifier: BSD-3-Clause
#include "train/plan_in_order.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "train/min_dp.hpp"

namespace banyan::train {
namespace {

/// Those that have a slot in `before`, then the first others, as many as have ranks; in the order of `nodes`.
std::vector<std::string> with_ranks(const topo::request& request, const std::vector<std::string>& nodes,
                                    const plan* before) {
    std::unordered_set<std::string_view> chosen;
    if (before)
        for (const auto& node : nodes)
            if (std::ranges::find(before->nodes, node) != before->nodes.end()) chosen.insert(node);
    for (const auto& node : nodes)
        if (chosen.size() < request.nodes) chosen.insert(node);
    std::vector<std::string> out;
    for (const auto& node : nodes)
        if (chosen.contains(node)) out.push_back(node);
    return out;
}

}  // namespace

result<plan> plan_in_order(const topo::request& request, const std::vector<std::string>& nodes,
                           const plan* before) {
    if (nodes.size() != request.nodes + request.spares)
        return fail(errc::invalid_input,
                    fmt::format("the job has {} nodes, and {} with {} spares is for {}", nodes.size(),
                                request.dims.text(), request.spares, request.nodes + request.spares));
    plan out;
    out.shape = request.dims.text();
    out.ranks_per_node = request.ranks_per_node;
    out.launchers = request.launchers;
    out.model = request.model;
    out.spread = spread_in_order;
    if (before && (before->nodes.size() != request.nodes || before->shape != out.shape)) before = nullptr;
    out.nodes = with_ranks(request, nodes, before);
    const std::unordered_set<std::string_view> ranks(out.nodes.begin(), out.nodes.end());
    for (const auto& node : nodes)
        if (!ranks.contains(node)) out.spares.push_back(node);
    if (before) out.nodes = keep_nodes(before->nodes, out.nodes);
    out.buddies = next_slots(request.nodes);
    return out;
}

std::vector<std::uint32_t> next_slots(std::uint32_t slots) {
    std::vector<std::uint32_t> out;
    for (std::uint32_t slot = 0; slot < slots; ++slot) out.push_back((slot + 1) % slots);
    return out;
}

}  // namespace banyan::train
