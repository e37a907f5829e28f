// SPDX-License-Identifier: BSD-3-Clause
//
// A shard in chunks: the unit of checksums and of transfers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace banyan::ckpt {

constexpr std::size_t chunk_bytes = 4u << 20;

constexpr std::size_t chunk_count(std::uint64_t bytes) { return (bytes + chunk_bytes - 1) / chunk_bytes; }

inline std::span<std::byte> chunk_of(std::span<std::byte> data, std::size_t index) {
    const auto from = index * chunk_bytes;
    return data.subspan(from, std::min(chunk_bytes, data.size() - from));
}

}  // namespace banyan::ckpt
