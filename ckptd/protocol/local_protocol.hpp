// SPDX-License-Identifier: BSD-3-Clause
//
// Which release of the library and which of the daemon understand each other. A container brings a library of
// its own, and a daemon goes on while packages are replaced: both say what they speak when a rank attaches,
// and use the newest that both do. It covers what a rank and its daemon say on the socket, from the attach
// on, and the page of words that both map (buffers/rank_memory.hpp); the page says the protocol of whoever
// made it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace banyan::ckpt {

/// In messages a list of the two: "protocol": [1, 2].
struct protocol_range {
    std::uint32_t oldest = 0, newest = 0;

    constexpr bool has(std::uint32_t protocol) const { return oldest <= protocol && protocol <= newest; }
    bool operator==(const protocol_range&) const = default;
};

/// What this release speaks. `newest` grows with each change that the other side must know of, a word more in
/// the page among them; `oldest`, when what came before is understood no more.
constexpr protocol_range local_protocol{1, 1};

/// The newest that both speak; nothing where there is none.
constexpr std::optional<std::uint32_t> common_protocol(const protocol_range& a, const protocol_range& b) {
    const auto newest = a.newest < b.newest ? a.newest : b.newest;
    return a.has(newest) && b.has(newest) ? std::optional(newest) : std::nullopt;
}

/// "protocol 2", "protocol 1 to 3".
inline std::string in_words(const protocol_range& r) {
    const auto first = "protocol " + std::to_string(r.oldest);
    return r.oldest == r.newest ? first : first + " to " + std::to_string(r.newest);
}

}  // namespace banyan::ckpt
