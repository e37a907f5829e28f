// SPDX-License-Identifier: BSD-3-Clause
#include "train/min_dp.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

namespace banyan::train {
namespace {

/// By so many nodes the number of nodes may change; 0: not at all.
std::uint32_t nodes_at_a_time(const topo::request& full) {
    const auto group = ranks_of_group(full.dims), node = full.ranks_per_node;
    if (node == 0) return 0;
    return group % node == 0 ? group / node : node % group == 0 ? 1 : 0;
}

bool dp_is_outermost(const topo::shape& dims) {
    const auto at = std::ranges::find(dims.order, topo::dimension::dp, &topo::extent::dim);
    return at == dims.order.end() ||
           std::all_of(at + 1, dims.order.end(), [](const auto& e) { return e.size == 1; });
}

}  // namespace

result<std::uint32_t> nodes_of_groups(const topo::request& full, std::uint32_t min_dp) {
    const auto dp = full.dims.size(topo::dimension::dp);
    if (min_dp > dp)
        return fail(errc::invalid_input,
                    fmt::format("--train-min-dp={} is more than the dp={} of --train-parallel={}", min_dp, dp,
                                full.dims.text()),
                    "write the fewest groups that may train on, such as --train-min-dp=" +
                        std::to_string(std::max(1U, dp - 1)));
    if (!dp_is_outermost(full.dims))
        return fail(
            errc::invalid_input,
            fmt::format("--train-min-dp leaves out whole groups of ranks, and in --train-parallel={} dp "
                        "is not the outermost dimension",
                        full.dims.text()),
            "name dp last, or omit --train-min-dp");
    const auto step = nodes_at_a_time(full);
    const auto group = ranks_of_group(full.dims);
    if (step == 0)
        return fail(
            errc::invalid_input,
            fmt::format("--train-min-dp leaves out whole nodes, and a group of {} ranks does not fill nodes "
                        "of {} evenly",
                        group, full.ranks_per_node),
            "choose ranks for each node that divide a group, or omit --train-min-dp");
    const auto ranks = std::uint64_t{min_dp} * group;
    const auto nodes = (ranks + full.ranks_per_node - 1) / full.ranks_per_node;
    return static_cast<std::uint32_t>((nodes + step - 1) / step * step);
}

std::optional<topo::request> request_on(const topo::request& full, std::uint32_t min_nodes,
                                        std::uint32_t nodes) {
    if (nodes >= full.nodes) return full;
    const auto step = nodes_at_a_time(full);
    if (min_nodes == 0 || step == 0) return std::nullopt;
    auto out = full;
    out.nodes = nodes / step * step;
    if (out.nodes < min_nodes) return std::nullopt;
    for (auto& extent : out.dims.order)
        if (extent.dim == topo::dimension::dp)
            extent.size = out.nodes * full.ranks_per_node / ranks_of_group(full.dims);
    return out;
}

std::vector<std::string> keep_nodes(const std::vector<std::string>& planned,
                                    const std::vector<std::string>& step) {
    std::unordered_map<std::string_view, std::size_t> slot_of;
    for (std::size_t slot = 0; slot < planned.size() && slot < step.size(); ++slot)
        slot_of[planned[slot]] = slot;
    std::vector<std::string> out(step.size());
    std::vector<const std::string*> others;
    for (const auto& node : step) {
        const auto at = slot_of.find(node);
        if (at != slot_of.end())
            out[at->second] = node;
        else
            others.push_back(&node);
    }
    auto next = others.begin();
    for (auto& node : out)
        if (node.empty() && next != others.end()) node = **next++;
    return out;
}

}  // namespace banyan::train
