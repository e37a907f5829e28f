// SPDX-License-Identifier: BSD-3-Clause
#include "train/admin_comment.hpp"

#include <algorithm>

#include <banyan/topo/traffic.hpp>
#include <fmt/format.h>

#include "common/text.hpp"
#include "train/plan.hpp"

namespace banyan::train {
namespace {

constexpr std::string_view comment_head = "banyan: ";

/// The value of " key=value" in a comment, up to the next blank; empty when it is absent.
std::string_view word_after(std::string_view text, std::string_view key) {
    for (const auto word : split(text, ' '))
        if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=')
            return word.substr(key.size() + 1);
    return {};
}

/// " straddling-pp=0/4": how many of the units that should sit in one leaf group do not. Empty for a shape
/// whose slots no such group connects.
std::string straddling(const topo::request& r, const topo::spread& s) {
    const bool pipelines = r.dims.size(topo::dimension::pp) > 1;
    if (!pipelines && s.units == r.nodes) return {};
    return fmt::format(" straddling-{}={}/{}", pipelines ? "pp" : "tp", s.straddling_units, s.units);
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

std::string spares_word(const std::vector<std::string>& names) {
    return names.empty() ? " spares=0"
                         : fmt::format(" spares={}({})", names.size(), compress_hostlist(names));
}

}  // namespace

std::string with_spares(std::string_view line, const std::vector<std::string>& spares) {
    const auto at = line.find(" spares=");
    if (at == std::string_view::npos) return std::string(line);
    const auto end = std::min(line.find(' ', at + 1), line.size());
    return std::string(line.substr(0, at)) + spares_word(spares) + std::string(line.substr(end));
}

std::string admin_comment(const topo::request& r, const topo::spread& s,
                          const std::vector<std::string>& spare_names,
                          const std::optional<better_later>& later) {
    std::string groups;
    constexpr std::size_t shown = 8;
    for (std::size_t i = 0; i < s.groups.size() && i < shown; ++i)
        groups += fmt::format("{}{}:{}", i ? "," : "", s.groups[i].first, s.groups[i].second);
    if (s.groups.size() > shown) groups += fmt::format(",+{}", s.groups.size() - shown);
    return fmt::format("{}{} nodes={} ranks={}{}{} groups={}{}{}{}", comment_head, r.dims.text(), r.nodes,
                       r.dims.ranks(), r.launchers ? fmt::format(" tasks={}", r.nodes) : "",
                       spares_word(spare_names), groups, straddling(r, s),
                       r.model ? " model=" + topo::text_of(*r.model) : "",
                       later ? fmt::format(" waiting={}m:-{}%", later->minutes, later->per_cent) : "");
}

result<admin_summary> parse_admin_comment(std::string_view text) {
    const auto not_ours = [] { return fail(errc::not_found, "the AdminComment is not banyan's"); };
    if (!text.starts_with(comment_head)) return not_ours();
    text.remove_prefix(comment_head.size());
    admin_summary out;
    out.shape = text.substr(0, text.find(' '));
    const auto dims = topo::parse_shape(out.shape);
    const auto nodes = parse_number(word_after(text, "nodes"), max_plan_nodes);
    if (!dims || !nodes) return not_ours();
    out.ranks = dims->ranks();
    out.nodes = static_cast<std::uint32_t>(*nodes);
    out.tasks = word_after(text, "tasks").empty() ? out.ranks : out.nodes;
    if (const auto model = word_after(text, "model"); !model.empty()) {
        BANYAN_TRY(out.model, topo::parse_model(model));
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

}  // namespace banyan::train
