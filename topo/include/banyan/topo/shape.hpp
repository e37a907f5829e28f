// SPDX-License-Identifier: BSD-3-Clause
//
// The parallel dimensions of a training job and the order in which the framework numbers its ranks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <banyan/topo/enum_array.hpp>

#include "common/result.hpp"

namespace banyan::topo {

/// Tensor, context, expert, pipeline and data parallel, as Megatron-LM names them; from the most to the least
/// traffic.
enum class dimension : std::uint8_t { tp, cp, ep, pp, dp };
inline constexpr std::array all_dimensions{dimension::tp, dimension::cp, dimension::ep, dimension::pp,
                                           dimension::dp};
inline constexpr std::size_t dimension_count = all_dimensions.size();
std::string_view name_of(dimension d);

template <class Value>
using by_dimension = enum_array<dimension, Value, dimension_count>;

struct extent {
    dimension dim = dimension::tp;
    std::uint32_t size = 1;
};

/// "tp=8,pp=4,dp=2": rank = tp + 8 * (pp + 4 * dp).
struct shape {
    std::vector<extent>
        order;  ///< innermost (fastest running) first; every dimension at most once, every size >= 1

    std::uint32_t ranks() const;            ///< product of all sizes
    std::uint32_t size(dimension d) const;  ///< 1 for a dimension that is not listed
    by_dimension<std::uint32_t> coordinates(std::uint32_t rank) const;
    std::string text() const;  ///< as parse_shape takes it
};

constexpr std::uint32_t max_ranks = 1'048'576;
constexpr std::size_t max_shape_text = 256;

/// Refuses unknown and doubled dimensions, sizes of 0, products over max_ranks, and longer texts; says what
/// would be right.
result<shape> parse_shape(std::string_view text);

}  // namespace banyan::topo
