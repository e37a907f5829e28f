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
    out[dimension::cp] = c > 1 ? 3 * 2 * layers * activations / t * (c - 1) : 0;
    out[dimension::ep] = e > 1 ? 4 * layers * activations / t / e : 0;
    out[dimension::pp] = p > 1 ? activations / t : 0;
    out[dimension::dp] =
        d > 1 ? 2 * (d - 1) / d * bytes_per_element * parameters_per_layer * m.hidden * m.hidden * layers / t
              : 0;
    return out;
}

traffic weights_of(const request& r) {
    auto out = traffic_of(r.dims, r.model.value_or(model_size{}));
    if (r.model) return out;
    const auto outside = std::max({out[dimension::cp], out[dimension::ep], out[dimension::dp]});
    auto inside = out[dimension::pp] > 0 ? out[dimension::pp] : out[dimension::tp];
    if (out[dimension::tp] > 0) inside = std::min(inside, out[dimension::tp]);
    if (inside <= 0) return out;
    // Of the ranks of a node as few as one tensor group may send to the unit's next node, and all to others.
    const auto ranks = std::max(1.0, static_cast<double>(r.ranks_per_node) / r.dims.size(dimension::tp));
    const auto factor = std::max(1.0, weight_of_unit * ranks * outside / inside);
    out[dimension::tp] *= factor;
    out[dimension::pp] *= factor;
    return out;
}

std::string text_of(const model_size& m) {
    return fmt::format("hidden={},layers={},seq={},micro={}", m.hidden, m.layers, m.sequence, m.micro);
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
            const auto close = nearest(key, {"hidden", "layers", "seq", "micro"});
            return wrong(fmt::format("unknown key \"{}\"", key),
                         close.empty() ? "keys are hidden, layers, seq and micro"
                                       : fmt::format("did you mean {}?", close));
        }
    }
    return out;
}

}  // namespace banyan::topo
