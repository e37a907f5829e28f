// SPDX-License-Identifier: BSD-3-Clause
//
// Links that are up and that new jobs are to keep off: a cable that flaps, a port that counts errors. The
// fault controller writes them into a file of its own beside the snapshot, slurmctld reads both: so each file
// has one writer. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <banyan/topo/fabric.hpp>

#include "common/result.hpp"

namespace banyan::topo {

/// A port for ever: neither names nor LIDs.
struct link_port {
    guid id = 0;  ///< of its node; 0 = not known
    std::uint16_t port = 0;
    auto operator<=>(const link_port&) const = default;
};

struct avoided_link {
    link_port a, b;   ///< one known end is enough
    std::string why;  ///< on whose word: "f00012"; one word
    bool operator==(const avoided_link&) const = default;
};

constexpr std::size_t max_avoid_bytes = std::size_t{1} << 20, max_avoided_links = 10'000;

/// The file: a head with the number of its lines, then a line for each. Fails on anything else, and on half
/// of a file: links that could not be read are not links that are well.
std::string avoid_text(std::span<const avoided_link> all);
result<std::vector<avoided_link>> read_avoid(std::string_view text);

/// Marks these links and no others, and reckons anew what follows from it. How many of them are here.
std::size_t mark_avoided(fabric& f, std::span<const avoided_link> all);

/// Index of the link with that end, or none.
std::uint32_t find_link(const fabric& f, const avoided_link& one);

/// Whether `one` may be avoided beside `all`: at each of its switches at most `percent` of the links that go
/// where it goes (up, down, to hosts), one at least. The error says which switch has no more to give, or
/// that the fabric has no such link.
result<void> room_to_avoid(const fabric& f, std::span<const avoided_link> all, const avoided_link& one,
                           std::uint32_t percent);

}  // namespace banyan::topo
