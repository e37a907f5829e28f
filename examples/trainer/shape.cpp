// SPDX-License-Identifier: BSD-3-Clause
//
// Parsing of the shape and the arithmetic of ranks and coordinates.
#include "examples/trainer/shape.hpp"

#include <algorithm>
#include <charconv>

#include "examples/trainer/failure.hpp"

namespace trainer {
namespace {

constexpr std::uint32_t max_ranks = 1u << 20;

axis axis_of(std::string_view name, std::string_view text) {
    const auto found = std::ranges::find(axis_names, name);
    if (found == axis_names.end())
        throw failure("BANYAN_SHAPE \"" + std::string(text) + "\" names \"" + std::string(name) +
                      "\"; known are tp, cp, ep, pp and dp");
    return static_cast<axis>(found - axis_names.begin());
}

std::uint32_t size_of(std::string_view digits, std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (ec != std::errc{} || end != digits.data() + digits.size() || value == 0 || value > max_ranks)
        throw failure("BANYAN_SHAPE \"" + std::string(text) + "\" has the size \"" + std::string(digits) +
                      "\"; expected a number from 1 to " + std::to_string(max_ranks));
    return value;
}

}  // namespace

std::uint32_t shape::ranks() const {
    std::uint32_t product = 1;
    for (const auto size : sizes.of) product *= size;
    return product;
}

coordinates shape::place(std::uint32_t rank) const {
    coordinates out;
    for (const auto a : order) {
        out[a] = rank % sizes[a];
        rank /= sizes[a];
    }
    return out;
}

shape parse_shape(std::string_view text) {
    shape out;
    out.sizes.of.fill(1);
    std::uint64_t product = 1;
    for (std::size_t from = 0; from <= text.size();) {
        const auto comma = std::min(text.find(',', from), text.size());
        const auto part = text.substr(from, comma - from);
        from = comma + 1;
        const auto equals = part.find('=');
        if (equals == part.npos)
            throw failure("BANYAN_SHAPE \"" + std::string(text) + "\" has the part \"" + std::string(part) +
                          "\"; expected such as tp=2,pp=2,dp=4");
        const auto a = axis_of(part.substr(0, equals), text);
        if (std::ranges::find(out.order, a) != out.order.end())
            throw failure("BANYAN_SHAPE \"" + std::string(text) + "\" names " +
                          std::string(part.substr(0, equals)) + " twice");
        out.order.push_back(a);
        out.sizes[a] = size_of(part.substr(equals + 1), text);
        product *= out.sizes[a];
        if (product > max_ranks)
            throw failure("BANYAN_SHAPE \"" + std::string(text) + "\" is more than " +
                          std::to_string(max_ranks) + " ranks");
    }
    return out;
}

std::vector<std::uint32_t> group_along(const std::vector<coordinates>& places, std::uint32_t rank, axis a) {
    std::vector<std::uint32_t> out;
    auto mine = places[rank];
    mine[a] = 0;
    for (std::uint32_t other = 0; other < places.size(); ++other) {
        auto theirs = places[other];
        theirs[a] = 0;
        if (theirs == mine) out.push_back(other);
    }
    std::ranges::sort(out, {}, [&](std::uint32_t r) { return places[r][a]; });
    return out;
}

void check_places(const std::vector<coordinates>& places, const coordinates& sizes) {
    std::vector<std::uint32_t> taken_by(places.size(), UINT32_MAX);
    for (std::uint32_t rank = 0; rank < places.size(); ++rank) {
        std::uint64_t index = 0;
        for (std::size_t i = axes; i-- > 0;) {
            if (places[rank].of[i] >= sizes.of[i])
                throw failure("rank " + std::to_string(rank) + " has a coordinate outside the shape");
            index = index * sizes.of[i] + places[rank].of[i];
        }
        if (index >= places.size() || taken_by[index] != UINT32_MAX)
            throw failure("rank " + std::to_string(rank) +
                          " has the same place in the shape as another rank");
        taken_by[index] = rank;
    }
}

}  // namespace trainer
