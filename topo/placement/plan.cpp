// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/plan.hpp>
#include <banyan/topo/traffic.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.hpp"

namespace banyan::topo {
namespace {

using nlohmann::json;

constexpr std::string_view comment_head = "banyan: ";

result<std::vector<std::string>> names_at(const json& from, const char* key) {
    const auto it = from.find(key);
    if (it == from.end()) return std::vector<std::string>{};
    if (!it->is_string())
        return fail(errc::invalid_input, fmt::format("the plan's \"{}\" is not a host list", key));
    return expand_hostlist(it->get_ref<const std::string&>());
}

result<std::uint32_t> number_at(const json& from, const char* key) {
    const auto it = from.find(key);
    if (it == from.end() || !it->is_number_unsigned() || it->get<std::uint64_t>() > UINT32_MAX)
        return fail(errc::invalid_input, fmt::format("the plan's \"{}\" is not a number", key));
    return it->get<std::uint32_t>();
}

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

/// The value of " key=value" in a comment, up to the next blank; empty when it is absent.
std::string_view word_after(std::string_view text, std::string_view key) {
    for (const auto word : split(text, ' '))
        if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=')
            return word.substr(key.size() + 1);
    return {};
}

/// "60m:-45%"
result<better_later> parse_later(std::string_view text) {
    constexpr std::string_view between = "m:-";
    const auto at = text.find(between);
    if (at == std::string_view::npos || !text.ends_with('%'))
        return fail(errc::invalid_input, "not MINUTESm:-PERCENT%");
    text.remove_suffix(1);
    better_later out;
    BANYAN_TRY(const auto minutes, parse_number(text.substr(0, at), UINT32_MAX));
    BANYAN_TRY(const auto per_cent, parse_number(text.substr(at + between.size()), 100));
    out.minutes = static_cast<std::uint32_t>(minutes);
    out.per_cent = static_cast<std::uint32_t>(per_cent);
    return out;
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
    return out.dump(-1, ' ', true, json::error_handler_t::replace);
}

result<plan> parse_plan(std::string_view text) {
    if (text.size() > max_plan_text)
        return fail(errc::invalid_input, fmt::format("the plan is longer than {} bytes", max_plan_text));
    const auto from = json::parse(text, nullptr, false);
    if (!from.is_object()) return fail(errc::invalid_input, "the plan is not a JSON object");
    BANYAN_TRY(const auto version, number_at(from, "version"));
    if (version != plan_version)
        return fail(errc::invalid_input,
                    fmt::format("the plan is of version {}, not {}", version, plan_version),
                    "use the release of banyan on all nodes that slurmctld has");
    plan out;
    BANYAN_TRY(out.job, number_at(from, "job"));
    BANYAN_TRY(out.generation, number_at(from, "generation"));
    BANYAN_TRY(out.restart, number_at(from, "restart"));
    BANYAN_TRY(out.ranks_per_node, number_at(from, "ranks_per_node"));
    const auto shape_text = from.find("shape");
    if (shape_text == from.end() || !shape_text->is_string())
        return fail(errc::invalid_input, "the plan has no shape");
    out.shape = shape_text->get<std::string>();
    BANYAN_TRY(const auto dims, parse_shape(out.shape));
    BANYAN_TRY(out.nodes, names_at(from, "nodes"));
    BANYAN_TRY(out.addrs, names_at(from, "addrs"));
    BANYAN_TRY(out.spares, names_at(from, "spares"));
    BANYAN_TRY(out.spare_addrs, names_at(from, "spare_addrs"));
    BANYAN_TRY(out.buddies, buddies_at(from, out.nodes.size()));
    if (out.nodes.empty() || std::uint64_t{out.ranks_per_node} * out.nodes.size() != dims.ranks())
        return fail(errc::invalid_input,
                    fmt::format("the plan's {} nodes with {} ranks each are not the {} ranks of {}",
                                out.nodes.size(), out.ranks_per_node, dims.ranks(), out.shape));
    if ((!out.addrs.empty() && out.addrs.size() != out.nodes.size()) ||
        (!out.spare_addrs.empty() && out.spare_addrs.size() != out.spares.size()))
        return fail(errc::invalid_input, "the plan's addresses are not one per node");
    return out;
}

std::string admin_comment(const request& r, const spread& s, const std::vector<std::string>& spare_names,
                          const std::optional<better_later>& later) {
    std::string groups;
    constexpr std::size_t shown = 8;
    for (std::size_t i = 0; i < s.groups.size() && i < shown; ++i)
        groups += fmt::format("{}{}:{}", i ? "," : "", s.groups[i].first, s.groups[i].second);
    if (s.groups.size() > shown) groups += fmt::format(",+{}", s.groups.size() - shown);
    const auto spares = spare_names.empty()
                            ? std::string("0")
                            : fmt::format("{}({})", spare_names.size(), compress_hostlist(spare_names));
    return fmt::format("{}{} nodes={} ranks={} spares={} groups={} straddling-pp={}/{}{}{}", comment_head,
                       r.dims.text(), r.nodes, r.dims.ranks(), spares, groups, s.straddling_units, s.units,
                       r.model ? " model=" + text_of(*r.model) : "",
                       later ? fmt::format(" waiting={}m:-{}%", later->minutes, later->per_cent) : "");
}

result<admin_summary> parse_admin_comment(std::string_view text) {
    const auto not_ours = [] { return fail(errc::not_found, "the AdminComment is not banyan's"); };
    if (!text.starts_with(comment_head)) return not_ours();
    text.remove_prefix(comment_head.size());
    admin_summary out;
    out.shape = text.substr(0, text.find(' '));
    const auto dims = parse_shape(out.shape);
    const auto nodes = parse_number(word_after(text, "nodes"), max_plan_nodes);
    if (!dims || !nodes) return not_ours();
    out.ranks = dims->ranks();
    out.nodes = static_cast<std::uint32_t>(*nodes);
    if (const auto model = word_after(text, "model"); !model.empty()) {
        BANYAN_TRY(out.model, parse_model(model));
    }
    if (const auto later = word_after(text, "waiting"); !later.empty()) {
        BANYAN_TRY(out.later, parse_later(later));
    }
    const auto spares = word_after(text, "spares");
    const auto open = spares.find('(');
    if (open != std::string_view::npos && spares.ends_with(')')) {
        BANYAN_TRY(out.spares, expand_hostlist(spares.substr(open + 1, spares.size() - open - 2)));
    }
    return out;
}

}  // namespace banyan::topo
