// SPDX-License-Identifier: BSD-3-Clause
#include "train/plan_summary.hpp"

#include <fmt/format.h>

#include "common/text.hpp"
#include "train/plan_fields.hpp"

namespace banyan::train {

plan_summary summary_of(const plan& p) {
    const auto slots = slots_of(p).value_or(static_cast<std::uint32_t>(p.nodes.size()));
    return {p, slots, p.nodes, p.spares, p.buddies};
}

std::string summary_text(const plan& p) {
    auto out = head_fields(p);
    out["nodes"] = summary_of(p).nodes;
    const auto text = [&] { return out.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace); };
    auto best = text();
    const auto add = [&](const char* key, nlohmann::json value) {
        out[key] = std::move(value);
        auto more = text();
        if (more.size() <= max_summary_text)
            best = std::move(more);
        else
            out.erase(key);
    };
    if (!p.nodes.empty()) add("order", compress_hostlist(p.nodes));
    if (!p.spares.empty()) add("spares", compress_hostlist(p.spares));
    if (!p.buddies.empty()) add("buddies", runs_of(p.buddies));
    return best;
}

result<plan_summary> parse_summary(std::string_view text) {
    if (text.size() > max_summary_text)
        return fail(errc::invalid_input,
                    fmt::format("the plan's summary is longer than {} bytes", max_summary_text));
    BANYAN_TRY(const auto from, fields_of(text));
    plan_summary out;
    BANYAN_CHECK(read_head(from, out));
    BANYAN_TRY(out.nodes, number_at(from, "nodes"));
    BANYAN_TRY(out.order, names_at(from, "order"));
    BANYAN_TRY(out.spares, names_at(from, "spares"));
    BANYAN_CHECK(check_ranks(out, out.nodes));
    BANYAN_TRY(const auto slots, slots_of(out));
    if (out.nodes != slots || out.min_nodes > slots)
        return fail(errc::invalid_input, fmt::format("the plan's {} nodes, {} at least, are not the {} of {}",
                                                     out.nodes, out.min_nodes, slots, out.shape));
    if (out.order.size() > slots)
        return fail(errc::invalid_input,
                    fmt::format("the plan's {} slots have {} nodes", slots, out.order.size()));
    if (from.contains("buddies")) {
        BANYAN_TRY(out.buddies, buddies_at(from, "buddies", out.nodes));
    }
    return out;
}

result<std::optional<plan_summary>> summary_in(const char* const* entries, std::uint32_t count,
                                               std::uint32_t job, std::uint32_t restart) {
    const auto head = std::string(summary_variable) + "=";
    std::optional<std::string_view> found;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::string_view entry = entries[i] ? entries[i] : "";
        if (!entry.starts_with(head)) continue;
        if (found) return fail(errc::denied, fmt::format("job {} has two plans", job));
        found = entry.substr(head.size());
    }
    if (!found) return std::nullopt;
    BANYAN_TRY(auto out, parse_summary(*found));
    if (out.job != job || out.restart != restart)
        return fail(errc::denied,
                    fmt::format("the plan is that of job {}, start {}; this is job {}, start {}", out.job,
                                out.restart, job, restart));
    return out;
}

}  // namespace banyan::train
