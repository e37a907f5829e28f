// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/baseline_figures.hpp"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"
#include "hardware/small_file.hpp"

namespace banyan::sweep {
namespace {

constexpr std::string_view rate_ends = "_bytes_per_second";

result<baseline_figures> figures_in(const nlohmann::json& report) {
    baseline_figures out;
    BANYAN_TRY(const auto checks, json_fields(report).list("checks"));
    for (const auto& one : checks) {
        if (!one.has("figures")) continue;
        BANYAN_TRY(const auto figures, one.object("figures"));
        for (const auto& [name, value] : one.find("figures")->items())
            if (value.is_number() && std::string_view(name).ends_with(rate_ends))
                out[name] = value.get<double>();
    }
    if (out.empty()) return fail(errc::invalid_input, "no bandwidth was measured in it");
    return out;
}

}  // namespace

result<baseline_figures> read_figures(const std::string& json, const std::string& name) {
    auto out = figures_in(nlohmann::json::parse(json, nullptr, false));
    if (!out)
        return fail(errc::invalid_input,
                    fmt::format("{} has no figures of a baseline node: {}", name, out.error().what),
                    "write it there: banyan-sweep --json >FILE");
    return out;
}

void hold_to(finding& f, const baseline_figures& baseline, std::uint32_t percent) {
    constexpr double giga = 1e9;
    const auto measured = f.figures;
    for (const auto& [name, rate] : measured) {
        if (!name.ends_with(rate_ends)) continue;
        const auto words = name.substr(0, name.size() - rate_ends.size());
        const auto at = baseline.find(name);
        if (at == baseline.end() || !(at->second > 0)) {
            add(f, unknown({errc::not_found, fmt::format("the baseline node has no figure {}", name), {}}));
            continue;
        }
        const auto least = at->second * percent / 100;
        if (rate < least)
            add(f, unfit(fmt::format("{}: {:.1f} GB/s, expected {:.1f}, {} % of the baseline node's {:.1f}",
                                     words, rate / giga, least / giga, percent, at->second / giga)));
    }
}

void hold_to(finding& f, const std::string& path, std::uint32_t percent) {
    if (path.empty()) return;
    const auto text = hardware::read_small(path, max_figures_bytes);
    const auto baseline = text ? read_figures(*text, path) : std::unexpected(text.error());
    baseline ? hold_to(f, *baseline, percent) : add(f, unknown(baseline.error()));
}

}  // namespace banyan::sweep
