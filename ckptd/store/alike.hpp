// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks that hold the same parts of the same tensors, as data parallel copies do: one of them has these
// written to storage, and the files of the others have the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace banyan::ckpt {

/// A short text that is the same for two shards exactly where all their parts of tensors have the same names,
/// dtypes and places; empty for a shard without any.
result<std::string> digest_of_pieces(std::span<const std::byte> image);

/// A shard as it is written without its parts of tensors.
struct packed_shard {
    std::span<const std::byte> image;
    std::vector<std::uint32_t> chunks;  ///< checksums
    std::unique_ptr<std::byte, void (*)(void*)> memory{nullptr, nullptr};
};
/// `chunks` are those of `image`: errc::conflict where what is read there is not as they say.
/// errc::exhausted: what is left is more than half of the shard, or than 64 MiB, which are made for it; it is
/// better written whole.
result<packed_shard> without_pieces(std::span<const std::byte> image,
                                    const std::vector<std::uint32_t>& chunks, std::uint64_t job);

}  // namespace banyan::ckpt
