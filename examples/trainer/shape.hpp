// SPDX-License-Identifier: BSD-3-Clause
//
// Where a rank stands in the parallel shape: its coordinate and the size along each axis, and the ranks that
// share all other coordinates with it. Knows the environment's spelling ("tp=2,pp=2,dp=4", innermost first),
// nothing of hosts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

enum class axis : std::uint8_t { tp, cp, ep, pp, dp };
constexpr std::size_t axes = 5;
constexpr std::array<std::string_view, axes> axis_names{"tp", "cp", "ep", "pp", "dp"};

/// One number per axis.
struct coordinates {
    std::array<std::uint32_t, axes> of{};
    std::uint32_t operator[](axis a) const { return of[static_cast<std::size_t>(a)]; }
    std::uint32_t& operator[](axis a) { return of[static_cast<std::size_t>(a)]; }
    bool operator==(const coordinates&) const = default;
};

struct shape {
    std::vector<axis> order;  ///< innermost first
    coordinates sizes;        ///< 1 for an axis that is not named
    std::uint32_t ranks() const;
    coordinates place(std::uint32_t rank) const;
};

/// Throws failure for an unknown or doubled axis, a size of zero, or more than a million ranks.
shape parse_shape(std::string_view text);

/// Ranks that differ from `rank` only along `a`, in the order of that coordinate; `rank` itself is among
/// them.
std::vector<std::uint32_t> group_along(const std::vector<coordinates>& places, std::uint32_t rank, axis a);

/// Every coordinate inside its size, and each place taken once; throws failure otherwise.
void check_places(const std::vector<coordinates>& places, const coordinates& sizes);

}  // namespace trainer
