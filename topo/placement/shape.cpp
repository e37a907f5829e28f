// SPDX-License-Identifier: BSD-3-Clause
#include <banyan/topo/shape.hpp>
#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::topo {
namespace {

constexpr by_dimension<std::string_view> names{"tp", "cp", "ep", "pp", "dp"};

}  // namespace

std::string_view name_of(dimension d) { return names[d]; }

std::uint32_t shape::ranks() const {
    std::uint32_t product = 1;
    for (const auto& e : order) product *= e.size;
    return product;
}

std::uint32_t shape::size(dimension d) const {
    for (const auto& e : order)
        if (e.dim == d) return e.size;
    return 1;
}

by_dimension<std::uint32_t> shape::coordinates(std::uint32_t rank) const {
    by_dimension<std::uint32_t> out{};
    for (const auto& e : order) {
        out[e.dim] = rank % e.size;
        rank /= e.size;
    }
    return out;
}

std::string shape::text() const {
    std::string out;
    for (const auto& e : order) out += fmt::format("{}{}={}", out.empty() ? "" : ",", name_of(e.dim), e.size);
    return out;
}

result<shape> parse_shape(std::string_view text) {
    constexpr auto example = "write for example tp=8,pp=4,dp=2, innermost dimension first";
    if (text.empty()) return fail(errc::invalid_input, "the shape is empty", example);
    if (text.size() > max_shape_text)
        return fail(errc::invalid_input, fmt::format("the shape is longer than {} bytes", max_shape_text),
                    example);
    shape out;
    std::uint64_t product = 1;
    for (const auto part : split(text, ',')) {
        const auto at = part.find('=');
        if (at == std::string_view::npos)
            return fail(errc::invalid_input, fmt::format("\"{}\" is not dimension=size", part), example);
        const auto name = part.substr(0, at);
        std::size_t index = 0;
        while (index < names.size() && names[index] != name) ++index;
        if (index == names.size()) {
            const auto close = nearest(name, {"tp", "cp", "ep", "pp", "dp"});
            return fail(errc::invalid_input, fmt::format("unknown dimension \"{}\"", name),
                        close.empty() ? "dimensions are tp, cp, ep, pp and dp"
                                      : fmt::format("did you mean {}?", close));
        }
        const auto dim = static_cast<dimension>(index);
        for (const auto& e : out.order)
            if (e.dim == dim)
                return fail(errc::invalid_input, fmt::format("dimension {} is given twice", name),
                            "list each once");
        const auto size = parse_number(part.substr(at + 1), max_ranks);
        if (!size || *size == 0)
            return fail(errc::invalid_input,
                        fmt::format("{}={} is not a size from 1 to {}", name, printable(part.substr(at + 1)),
                                    max_ranks),
                        example);
        product *= *size;
        if (product > max_ranks)
            return fail(errc::invalid_input, fmt::format("{} is more than {} ranks", text, max_ranks),
                        "check the sizes");
        out.order.push_back({dim, static_cast<std::uint32_t>(*size)});
    }
    return out;
}

}  // namespace banyan::topo
