// SPDX-License-Identifier: BSD-3-Clause
#include "train/plan_fields.hpp"

#include <banyan/topo/shape.hpp>
#include <fmt/format.h>

#include "common/json_fields.hpp"
#include "common/text.hpp"
#include "train/min_dp.hpp"

namespace banyan::train {

using nlohmann::json;

namespace {

/// A field as it was read; where that failed, the error says that it is the plan's.
template <class T>
result<T> of_plan(result<T> read) {
    if (!read) read.error().what.insert(0, "the plan's ");
    return read;
}

result<bool> flag_at(const json& from, const char* key) {
    const json_fields in(from);
    if (!in.has(key)) return false;
    return of_plan(in.flag(key));
}

/// The reverse of runs_of, for as many slots; a permutation of them.
result<std::vector<std::uint32_t>> buddies_of(const std::vector<std::uint32_t>& runs, std::size_t slots) {
    const auto wrong = [] {
        return fail(errc::invalid_input, "the plan's buddies are not a permutation of the slots");
    };
    if (runs.size() % 2 != 0) return wrong();
    std::vector<std::uint32_t> out;
    out.reserve(slots);
    std::vector<bool> seen(slots);
    for (std::size_t i = 0; i < runs.size(); i += 2) {
        const auto distance = runs[i], count = runs[i + 1];
        if (distance >= slots || count > slots - out.size()) return wrong();
        for (std::uint32_t n = 0; n < count; ++n) {
            const auto buddy = (out.size() + distance) % slots;
            if (seen[buddy]) return wrong();
            seen[buddy] = true;
            out.push_back(static_cast<std::uint32_t>(buddy));
        }
    }
    if (out.size() != slots) return wrong();
    return out;
}

}  // namespace

std::vector<std::uint32_t> runs_of(const std::vector<std::uint32_t>& buddies) {
    const auto slots = static_cast<std::uint32_t>(buddies.size());
    std::vector<std::uint32_t> out;
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
        const auto distance = (buddies[slot] + slots - slot) % slots;
        if (out.empty() || out[out.size() - 2] != distance)
            out.insert(out.end(), {distance, 1});
        else
            ++out.back();
    }
    return out;
}

result<std::vector<std::string>> names_at(const json& from, const char* key) {
    BANYAN_TRY(const auto list, text_at(from, key));
    if (list.empty()) return std::vector<std::string>{};
    return expand_hostlist(list);
}

result<std::string> text_at(const json& from, const char* key) {
    const json_fields in(from);
    if (!in.has(key)) return std::string();
    return of_plan(in.text(key, max_plan_text));
}

result<std::optional<std::vector<std::uint32_t>>> numbers_at(const json& from, const char* key,
                                                             std::size_t count) {
    const json_fields in(from);
    if (!in.has(key)) return std::nullopt;
    return of_plan(in.numbers(key, count));
}

result<std::vector<std::uint32_t>> buddies_at(const json& from, const char* key, std::size_t slots) {
    BANYAN_TRY(const auto runs, numbers_at(from, key, 2 * slots));
    return buddies_of(runs.value_or(std::vector<std::uint32_t>{}), slots);
}

json head_fields(const plan_head& head) {
    json out{{"version", head.min_nodes ? elastic_plan_version : plan_version},
             {"job", head.job},
             {"generation", head.generation},
             {"restart", head.restart},
             {"shape", head.shape},
             {"ranks_per_node", head.ranks_per_node}};
    if (head.launchers) out["launchers"] = true;
    if (head.min_nodes) out["min_nodes"] = head.min_nodes;
    if (head.supervised) out["supervised"] = true;
    return out;
}

result<void> read_head(const json& from, plan_head& into) {
    BANYAN_TRY(into.job, number_at(from, "job"));
    BANYAN_TRY(into.generation, number_at(from, "generation"));
    BANYAN_TRY(into.restart, number_at(from, "restart"));
    BANYAN_TRY(into.ranks_per_node, number_at(from, "ranks_per_node"));
    BANYAN_TRY(into.shape, text_at(from, "shape"));
    BANYAN_TRY(into.launchers, flag_at(from, "launchers"));
    BANYAN_TRY(into.supervised, flag_at(from, "supervised"));
    if (from.contains("min_nodes")) {
        BANYAN_TRY(into.min_nodes, number_at(from, "min_nodes"));
    }
    return {};
}

result<std::uint32_t> slots_of(const plan_head& head) {
    BANYAN_TRY(const auto dims, topo::parse_shape(head.shape));
    if (head.ranks_per_node == 0 || dims.ranks() % head.ranks_per_node != 0)
        return fail(errc::invalid_input, fmt::format("{} ranks on each of the plan's nodes do not divide {}",
                                                     head.ranks_per_node, head.shape));
    const auto slots = dims.ranks() / head.ranks_per_node;
    if (slots > max_plan_nodes)
        return fail(errc::invalid_input,
                    fmt::format("{} with {} ranks a node needs {} nodes, more than the {} of a plan",
                                head.shape, head.ranks_per_node, slots, max_plan_nodes));
    return slots;
}

result<void> check_ranks(const plan_head& head, std::uint64_t nodes) {
    BANYAN_TRY(const auto dims, topo::parse_shape(head.shape));
    if (nodes != 0 && nodes * head.ranks_per_node == dims.ranks()) return {};
    if (nodes != 0 && head.min_nodes != 0 && nodes < max_plan_nodes) {
        BANYAN_TRY(const auto slots, slots_of(head));
        const topo::request full{dims, slots, head.ranks_per_node, 0, std::nullopt, false};
        const auto fewer = request_on(full, head.min_nodes, static_cast<std::uint32_t>(nodes));
        if (nodes < slots && fewer && fewer->nodes == nodes) return {};
    }
    return fail(errc::invalid_input,
                fmt::format("the plan's {} nodes with {} ranks each are not the {} ranks of {}", nodes,
                            head.ranks_per_node, dims.ranks(), head.shape));
}

result<std::uint32_t> number_at(const json& from, const char* key) {
    return of_plan(json_fields(from).number(key, UINT32_MAX));
}

result<json> fields_of(std::string_view text) {
    auto from = json::parse(text, nullptr, false);
    if (!from.is_object()) return fail(errc::invalid_input, "the plan is not a JSON object");
    BANYAN_TRY(const auto version, number_at(from, "version"));
    if (version != (from.contains("min_nodes") ? elastic_plan_version : plan_version))
        return fail(errc::invalid_input,
                    fmt::format("the plan is of version {}, not {}", version, plan_version),
                    "use the release of banyan on all nodes that slurmctld has");
    return from;
}

}  // namespace banyan::train
