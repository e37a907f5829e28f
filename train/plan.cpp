// SPDX-License-Identifier: BSD-3-Clause
#include "train/plan.hpp"

#include <unordered_set>

#include <banyan/topo/traffic.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "train/plan_fields.hpp"

namespace banyan::train {
namespace {

using nlohmann::json;

/// [minutes, per cent]
result<better_later> later_of(const std::vector<std::uint32_t>& numbers) {
    if (numbers.size() != 2 || numbers[1] > 100)
        return fail(errc::invalid_input, "the plan's \"later\" is not minutes and per cent");
    return better_later{numbers[0], numbers[1]};
}

}  // namespace

std::string to_text(const plan& p) {
    auto out = head_fields(p);
    out["nodes"] = compress_hostlist(p.nodes);
    out["buddies"] = runs_of(p.buddies);
    if (!p.addrs.empty() && p.addrs != p.nodes) out["addrs"] = compress_hostlist(p.addrs);
    if (!p.spares.empty()) out["spares"] = compress_hostlist(p.spares);
    if (!p.spare_addrs.empty() && p.spare_addrs != p.spares)
        out["spare_addrs"] = compress_hostlist(p.spare_addrs);
    if (!p.former.empty()) out["former"] = compress_hostlist(p.former);
    if (!p.former_addrs.empty() && p.former_addrs != p.former)
        out["former_addrs"] = compress_hostlist(p.former_addrs);
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
    BANYAN_CHECK(read_head(from, out));
    BANYAN_TRY(out.nodes, names_at(from, "nodes"));
    BANYAN_TRY(out.addrs, names_at(from, "addrs"));
    BANYAN_TRY(out.spares, names_at(from, "spares"));
    BANYAN_TRY(out.spare_addrs, names_at(from, "spare_addrs"));
    BANYAN_TRY(out.former, names_at(from, "former"));
    BANYAN_TRY(out.former_addrs, names_at(from, "former_addrs"));
    BANYAN_CHECK(check_ranks(out, out.nodes.size()));
    BANYAN_TRY(const auto slots, slots_of(out));
    BANYAN_TRY(out.buddies, buddies_at(from, "buddies", slots));
    BANYAN_TRY(const auto model, text_at(from, "model"));
    if (!model.empty()) {
        BANYAN_TRY(out.model, topo::parse_model(model));
    }
    BANYAN_TRY(const auto later, numbers_at(from, "later", 2));
    if (later) {
        BANYAN_TRY(out.later, later_of(*later));
    }
    BANYAN_TRY(out.spread, text_at(from, "spread"));
    if ((!out.addrs.empty() && out.addrs.size() != out.nodes.size()) ||
        (!out.spare_addrs.empty() && out.spare_addrs.size() != out.spares.size()) ||
        (!out.former_addrs.empty() && out.former_addrs.size() != out.former.size()))
        return fail(errc::invalid_input, "the plan's addresses are not one per node");
    return out;
}

std::vector<std::string> former_after(const plan& before, const plan& next) {
    // A placement of this run that came to nothing left nothing anywhere.
    if (before.restart == next.restart) return before.former;
    std::vector<std::string> out;
    std::unordered_set<std::string_view> known;
    const auto most = max_former_runs * (next.nodes.size() + next.spares.size());
    for (const auto* names : {&before.nodes, &before.spares, &before.former})
        for (const auto& name : *names)
            if (out.size() < most && known.insert(name).second) out.push_back(name);
    return out;
}

}  // namespace banyan::train
