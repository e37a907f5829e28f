// SPDX-License-Identifier: BSD-3-Clause
#include "fault/incident/filter.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/text.hpp"

namespace banyan::fault {
namespace {

constexpr std::array<std::string_view, 5> filter_states{"open", "acting", "done", "held", "closed"};
// Any user of the host may ask.
constexpr hostlist_limits most_nodes{.names = 4096, .bytes = 256 * 1024};

bool in_state(const incident& i, const std::string& state) {
    const bool closed = i.closed_ms != 0;
    if (state.empty()) return true;
    if (state == "closed" || state == "open") return closed == (state == "closed");
    return !closed && name_of(i.state) == state;
}

}  // namespace

void incident_filter::write(nlohmann::json& to) const {
    if (!nodes.empty()) to["nodes"] = nodes;
    if (!reason.empty()) to["reason"] = reason;
    if (!state.empty()) to["state"] = state;
    if (job) to["job"] = *job;
    if (since_ms > 0) to["since_ms"] = since_ms;
    if (until_ms != INT64_MAX) to["until_ms"] = until_ms;
}

result<incident_sieve> incident_sieve::from(const incident_filter& filter) {
    incident_sieve out;
    out.filter_ = filter;
    if (!filter.state.empty() && std::ranges::find(filter_states, filter.state) == filter_states.end())
        return fail(errc::invalid_input, fmt::format("\"{}\" is no state", filter.state),
                    fmt::format("possible are {}", fmt::join(filter_states, ", ")));
    if (filter.nodes.empty()) return out;
    BANYAN_TRY(const auto names, expand_hostlist(filter.nodes, most_nodes));
    out.nodes_.insert(names.begin(), names.end());
    return out;
}

result<incident_sieve> incident_sieve::from(const json_fields& request) {
    incident_filter filter;
    BANYAN_CHECK(request.may("nodes", filter.nodes));
    BANYAN_CHECK(request.may("reason", filter.reason));
    BANYAN_CHECK(request.may("state", filter.state));
    BANYAN_CHECK(request.may("since_ms", filter.since_ms));
    BANYAN_CHECK(request.may("until_ms", filter.until_ms));
    if (request.has("job")) {
        BANYAN_TRY(filter.job, request.number("job"));
    }
    return from(filter);
}

bool incident_sieve::passes(const incident& i) const {
    const auto& f = filter_;
    if (!f.reason.empty() && i.reason != f.reason) return false;
    if (i.incident_ms < f.since_ms || i.incident_ms > f.until_ms || !in_state(i, f.state)) return false;
    if (f.job && std::ranges::find(i.jobs, *f.job) == i.jobs.end()) return false;
    if (f.nodes.empty() || nodes_.contains(i.object.node)) return true;
    if (std::ranges::any_of(i.shown, [&](const auto& node) { return nodes_.contains(node); })) return true;
    return std::ranges::any_of(i.object.ends, [&](const end_point& e) { return nodes_.contains(e.node); });
}

}  // namespace banyan::fault
