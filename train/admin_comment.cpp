// SPDX-License-Identifier: BSD-3-Clause
#include "train/admin_comment.hpp"

#include <banyan/topo/traffic.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "common/text.hpp"
#include "train/admin_comment_reader.hpp"
#include "train/min_dp.hpp"
#include "train/plan_fields.hpp"

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

/// That runs on the plan's nodes.
std::string shape_of(const plan& p) {
    const auto dims = topo::parse_shape(p.shape);
    const auto slots = slots_of(p);
    if (!dims || !slots || p.nodes.size() >= *slots) return p.shape;
    const auto now = request_on({*dims, *slots, p.ranks_per_node, 0, std::nullopt, p.launchers}, p.min_nodes,
                                static_cast<std::uint32_t>(p.nodes.size()));
    return now ? now->dims.text() : p.shape;
}

std::string spares_word(const std::vector<std::string>& names) {
    return names.empty() ? " spares=0"
                         : fmt::format(" spares={}({})", names.size(), compress_hostlist(names));
}

}  // namespace

std::string spread_in_words(const topo::request& r, const topo::spread& s) {
    std::string groups;
    constexpr std::size_t shown = 8;
    for (std::size_t i = 0; i < s.groups.size() && i < shown; ++i)
        groups += fmt::format("{}{}:{}", i ? "," : "", s.groups[i].first, s.groups[i].second);
    if (s.groups.size() > shown) groups += fmt::format(",+{}", s.groups.size() - shown);
    const auto unlike = s.unlike.empty() ? "" : " unlike=" + compress_hostlist(s.unlike);
    const auto fabric =
        s.fabric_unix_s == 0 ? "" : fmt::format(" fabric={:%Y-%m-%dT%H:%MZ}", fmt::gmtime(s.fabric_unix_s));
    return fmt::format("groups={}{}{}{}", groups, straddling(r, s), unlike, fabric);
}

std::string admin_comment(const plan& p) {
    const auto nodes = p.nodes.size();
    // One that goes on with fewer groups shows the shape that runs, and says which it asked for.
    const auto shape = shape_of(p);
    return fmt::format("{}{} nodes={} ranks={}{}{}{}{}{}{}", comment_head, shape, nodes,
                       nodes * p.ranks_per_node, p.launchers ? fmt::format(" tasks={}", nodes) : "",
                       spares_word(p.spares), p.spread.empty() ? "" : " " + p.spread,
                       p.model ? " model=" + topo::text_of(*p.model) : "",
                       p.later ? fmt::format(" waiting={}m:-{}%", p.later->minutes, p.later->per_cent) : "",
                       shape == p.shape ? "" : " of=" + p.shape);
}

bool is_admin_comment(std::string_view text) {
    if (!text.starts_with(comment_head)) return false;
    text.remove_prefix(comment_head.size());
    return topo::parse_shape(text.substr(0, text.find(' '))) &&
           parse_number(word_after(text, "nodes"), max_plan_nodes);
}

result<shown_plan> read_admin_comment(std::string_view text) {
    if (!is_admin_comment(text)) return fail(errc::not_found, "the AdminComment is not banyan's");
    text.remove_prefix(comment_head.size());
    shown_plan out;
    out.shape = text.substr(0, text.find(' '));
    BANYAN_TRY(const auto nodes, parse_number(word_after(text, "nodes"), max_plan_nodes));
    out.nodes = static_cast<std::uint32_t>(nodes);
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
