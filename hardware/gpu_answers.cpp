// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"
#include "common/text.hpp"
#include "hardware/gpus.hpp"

namespace banyan::hardware {
namespace {

using nlohmann::json;

constexpr std::uint32_t most_gpus = 4096;
constexpr std::size_t links_told = 64, longest_bus_id = 64, longest_domain = 64;

json links_json(const gpu_health& g) {
    json out = json::array();
    for (const bool active : g.links) out.push_back(active ? 1u : 0u);
    return out;
}

result<gpu_health> health_from(const json_fields& in) {
    gpu_health out;
    BANYAN_TRY(out.bus_id, in.text("bus_id", longest_bus_id));
    BANYAN_TRY(out.lost, in.flag("lost"));
    BANYAN_TRY(out.needs_reset, in.flag("needs_reset"));
    BANYAN_TRY(out.uncorrected, in.number("uncorrected"));
    BANYAN_TRY(out.remap_failed, in.flag("remap_failed"));
    BANYAN_TRY(out.remap_pending, in.flag("remap_pending"));
    BANYAN_TRY(out.slowed, in.flag("slowed"));
    out.in_use = in.flag("in_use").value_or(false);  // agents of before do not tell
    BANYAN_TRY(out.ecc_unknown, in.text("ecc_unknown"));
    if (in.has("nvlink_domain")) {
        BANYAN_TRY(auto domain, in.text("nvlink_domain", longest_domain));
        if (!domain.empty() && !is_nvlink_domain(domain))
            return fail(errc::invalid_input, "an NVLink domain is not a UUID and a clique");
        out.nvlink_domain = std::move(domain);
    }
    BANYAN_TRY(const auto links, in.numbers("links", links_told));
    for (const auto active : links) out.links.push_back(active != 0);
    return out;
}

}  // namespace

bool is_nvlink_domain(std::string_view text) {
    constexpr std::string_view shape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.";
    if (text.size() <= shape.size()) return false;
    for (std::size_t n = 0; n < shape.size(); ++n) {
        const char c = text[n];
        const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (shape[n] == 'x' ? !digit : c != shape[n]) return false;
    }
    const auto clique = text.substr(shape.size());
    const bool plain = clique.size() == 1 || clique.front() != '0';
    return plain && std::ranges::all_of(clique, [](char c) { return c >= '0' && c <= '9'; }) &&
           parse_number(clique, UINT32_MAX).has_value();
}

result<gpu_answers> ask_all(gpu_library& library) {
    BANYAN_TRY(const auto count, library.count());
    gpu_answers out;
    for (std::uint32_t n = 0; n < count && n < most_gpus; ++n) out.push_back(library.health(n));
    return out;
}

json to_json(const gpu_answers& gpus) {
    json list = json::array();
    for (const auto& g : gpus) {
        if (!g) {
            list.push_back({{"error", g.error().text()}});
            continue;
        }
        list.push_back({{"bus_id", g->bus_id},
                        {"lost", g->lost},
                        {"needs_reset", g->needs_reset},
                        {"uncorrected", g->uncorrected},
                        {"remap_failed", g->remap_failed},
                        {"remap_pending", g->remap_pending},
                        {"slowed", g->slowed},
                        {"in_use", g->in_use},
                        {"ecc_unknown", g->ecc_unknown},
                        {"links", links_json(*g)}});
        if (g->nvlink_domain) list.back()["nvlink_domain"] = *g->nvlink_domain;
    }
    return {{"gpus", std::move(list)}};
}

result<gpu_answers> gpu_answers_from(const json& told) {
    BANYAN_TRY(const auto list, json_fields(told).list("gpus", most_gpus));
    gpu_answers out;
    for (const auto& one : list) {
        if (one.has("error")) {
            BANYAN_TRY(auto why, one.text("error"));
            out.push_back(fail(errc::unavailable, std::move(why)));
            continue;
        }
        BANYAN_TRY(auto health, health_from(one));
        out.push_back(std::move(health));
    }
    return out;
}

}  // namespace banyan::hardware
