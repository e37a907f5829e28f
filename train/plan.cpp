// SPDX-License-Identifier: BSD-3-Clause
#include "train/plan.hpp"

#include <algorithm>

#include <banyan/topo/traffic.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "train/plan_fields.hpp"

namespace banyan::train {
namespace {

using nlohmann::json;

/// The buddies as [distance, how many slots in turn, distance, ...]: they mostly follow a stride.
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

result<std::vector<std::uint32_t>> buddies_at(const json& from, std::size_t slots) {
    const auto wrong = [] {
        return fail(errc::invalid_input, "the plan's buddies are not a permutation of the slots");
    };
    const auto it = from.find("buddies");
    if (it == from.end() || !it->is_array() || it->size() % 2 != 0) return wrong();
    std::vector<std::uint32_t> out;
    out.reserve(slots);
    std::vector<bool> seen(slots);
    for (std::size_t i = 0; i < it->size(); i += 2) {
        const auto &distance = (*it)[i], &count = (*it)[i + 1];
        if (!distance.is_number_unsigned() || !count.is_number_unsigned() ||
            distance.get<std::uint64_t>() >= slots || count.get<std::uint64_t>() > slots - out.size())
            return wrong();
        for (auto n = count.get<std::uint64_t>(); n > 0; --n) {
            const auto buddy = (out.size() + distance.get<std::uint64_t>()) % slots;
            if (seen[buddy]) return wrong();
            seen[buddy] = true;
            out.push_back(static_cast<std::uint32_t>(buddy));
        }
    }
    if (out.size() != slots) return wrong();
    return out;
}

/// [minutes, per cent]
result<std::optional<better_later>> later_at(const json& from) {
    const auto it = from.find("later");
    if (it == from.end()) return std::nullopt;
    const auto number = [&](std::size_t i, std::uint64_t most) {
        return (*it)[i].is_number_unsigned() && (*it)[i].get<std::uint64_t>() <= most;
    };
    if (!it->is_array() || it->size() != 2 || !number(0, UINT32_MAX) || !number(1, 100))
        return fail(errc::invalid_input, "the plan's \"later\" is not minutes and per cent");
    return better_later{(*it)[0].get<std::uint32_t>(), (*it)[1].get<std::uint32_t>()};
}

}  // namespace

std::string to_text(const plan& p) {
    json out{{"version", plan_version},
             {"job", p.job},
             {"generation", p.generation},
             {"restart", p.restart},
             {"shape", p.shape},
             {"ranks_per_node", p.ranks_per_node},
             {"nodes", compress_hostlist(p.nodes)},
             {"buddies", runs_of(p.buddies)}};
    if (!p.addrs.empty() && p.addrs != p.nodes) out["addrs"] = compress_hostlist(p.addrs);
    if (!p.spares.empty()) out["spares"] = compress_hostlist(p.spares);
    if (!p.spare_addrs.empty() && p.spare_addrs != p.spares)
        out["spare_addrs"] = compress_hostlist(p.spare_addrs);
    if (p.launchers) out["launchers"] = true;
    if (p.model) out["model"] = topo::text_of(*p.model);
    if (p.later) out["later"] = {p.later->minutes, p.later->per_cent};
    if (!p.spread.empty()) out["spread"] = p.spread;
    return out.dump(-1, ' ', true, json::error_handler_t::replace);
}

result<plan> parse_plan(std::string_view text) {
    if (text.size() > max_plan_text)
        return fail(errc::invalid_input, fmt::format("the plan is longer than {} bytes", max_plan_text));
    BANYAN_TRY(const auto from, fields_of(text));
    plan out;
    BANYAN_TRY(out.job, number_at(from, "job"));
    BANYAN_TRY(out.generation, number_at(from, "generation"));
    BANYAN_TRY(out.restart, number_at(from, "restart"));
    BANYAN_TRY(out.ranks_per_node, number_at(from, "ranks_per_node"));
    BANYAN_TRY(out.shape, text_at(from, "shape"));
    BANYAN_TRY(const auto dims, topo::parse_shape(out.shape));
    BANYAN_TRY(out.nodes, names_at(from, "nodes"));
    BANYAN_TRY(out.addrs, names_at(from, "addrs"));
    BANYAN_TRY(out.spares, names_at(from, "spares"));
    BANYAN_TRY(out.spare_addrs, names_at(from, "spare_addrs"));
    BANYAN_TRY(out.buddies, buddies_at(from, out.nodes.size()));
    BANYAN_TRY(out.launchers, flag_at(from, "launchers"));
    BANYAN_TRY(const auto model, text_at(from, "model"));
    if (!model.empty()) {
        BANYAN_TRY(out.model, topo::parse_model(model));
    }
    BANYAN_TRY(out.later, later_at(from));
    BANYAN_TRY(out.spread, text_at(from, "spread"));
    if (out.nodes.empty() || std::uint64_t{out.ranks_per_node} * out.nodes.size() != dims.ranks())
        return fail(errc::invalid_input,
                    fmt::format("the plan's {} nodes with {} ranks each are not the {} ranks of {}",
                                out.nodes.size(), out.ranks_per_node, dims.ranks(), out.shape));
    if ((!out.addrs.empty() && out.addrs.size() != out.nodes.size()) ||
        (!out.spare_addrs.empty() && out.spare_addrs.size() != out.spares.size()))
        return fail(errc::invalid_input, "the plan's addresses are not one per node");
    return out;
}

}  // namespace banyan::train
