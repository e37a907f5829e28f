// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/traffic.hpp>
#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::topo {
namespace {

constexpr double bytes_per_element = 2;
constexpr double parameters_per_layer = 12;  ///< times hidden squared

}  // namespace

traffic traffic_of(const shape& dims, const model_size& m) {
    const auto size = [&](dimension d) { return static_cast<double>(dims.size(d)); };
    const double t = size(dimension::tp), c = size(dimension::cp), e = size(dimension::ep),
                 p = size(dimension::pp), d = size(dimension::dp);
    const double layers = m.layers / p;
    // A rank's activations at one layer, all sequences of a step.
    const double activations = bytes_per_element * m.micro * m.sequence / c * m.hidden;
    traffic out{};
    out[dimension::tp] = t > 1 ? 8 * layers * activations * (t - 1) / t : 0;
    const bool all_to_all = m.cp == cp_scheme::all_to_all;
    out[dimension::cp] = c <= 1       ? 0
                         : all_to_all ? 8 * layers * activations / t / c
                                      : 3 * 2 * layers * activations / t * (c - 1);
    out[dimension::ep] = e > 1 ? 4 * layers * activations / t / e : 0;
    out[dimension::pp] = p > 1 ? activations / t : 0;
    out[dimension::dp] =
        d > 1 ? 2 * (d - 1) / d * bytes_per_element * parameters_per_layer * m.hidden * m.hidden * layers / t
              : 0;
    return out;
}

traffic weights_of(const request& r) {
    if (r.model) return traffic_of(r.dims, *r.model);
    traffic out{};
    for (const auto& m : usual_models) {
        const auto bytes = traffic_of(r.dims, m);
        for (const auto d : all_dimensions) out[d] += bytes[d];
    }
    return out;
}

std::string text_of(const model_size& m) {
    return fmt::format("hidden={},layers={},seq={},micro={}{}", m.hidden, m.layers, m.sequence, m.micro,
                       m.cp == cp_scheme::ring ? "" : ",cp=all-to-all");
}

result<model_size> parse_model(std::string_view text) {
    constexpr auto example = "write for example hidden=8192,layers=80,seq=8192,micro=16";
    const auto wrong = [&](std::string what, std::string hint) {
        return fail(errc::invalid_input, "--train-model: " + std::move(what), std::move(hint));
    };
    const auto pairs = parse_key_values(text);
    if (!pairs) return wrong(pairs.error().what, example);
    model_size out;
    constexpr std::uint64_t most = 10'000'000;
    for (const auto& [key, value] : *pairs) {
        if (key == "cp") {
            if (value != "ring" && value != "all-to-all")
                return wrong(fmt::format("cp={} is no scheme", value), "schemes are ring and all-to-all");
            out.cp = value == "ring" ? cp_scheme::ring : cp_scheme::all_to_all;
            continue;
        }
        const auto number = parse_number(value, most);
        if (!number || *number == 0)
            return wrong(fmt::format("{}={} is not a number from 1 to {}", key, value, most), example);
        const auto n = static_cast<std::uint32_t>(*number);
        if (key == "hidden")
            out.hidden = n;
        else if (key == "layers")
            out.layers = n;
        else if (key == "seq")
            out.sequence = n;
        else if (key == "micro")
            out.micro = n;
        else {
            const auto close = nearest(key, {"hidden", "layers", "seq", "micro", "cp"});
            return wrong(fmt::format("unknown key \"{}\"", key),
                         close.empty() ? "keys are hidden, layers, seq, micro and cp"
                                       : fmt::format("did you mean {}?", close));
        }
    }
    return out;
}

}  // namespace banyan::topo
