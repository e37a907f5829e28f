// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that has grown: a header and buffers, each of which begins in one file and goes on in the next, so
// that larger buffers cost the bytes that are new. Mapped, each buffer is in one piece; daemon and rank map
// it alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "ckptd/buffers/rank_memory.hpp"
#include "common/fd.hpp"
#include "common/result.hpp"

namespace banyan::ckpt {

/// Descriptors of one memory; with more it is made anew, in one.
constexpr std::size_t max_parts = 16;

/// Bytes before the buffers, and their number. Page by page.
struct joined_shape {
    std::uint64_t header = 0, buffers = 1;
    /// Before the page of the header.
    std::uint64_t lead() const { return header - std::min<std::uint64_t>(header, page_bytes); }
    bool operator==(const joined_shape&) const = default;
};

/// What lies in one piece in a file and in the whole.
struct joined_piece {
    std::size_t part = 0;
    std::uint64_t from = 0;  ///< in the part's file
    std::uint64_t to = 0;    ///< in the whole
    std::uint64_t bytes = 0;
};

/// `each`: what every part has of one buffer. Part 0 begins with the header.
std::vector<joined_piece> joined_pieces(const joined_shape& shape, std::span<const std::uint64_t> each);

/// Address space for a whole, nothing in it yet. It begins where a huge page may.
result<mapping> joined_space(const joined_shape& shape, std::span<const std::uint64_t> each);

}  // namespace banyan::ckpt
