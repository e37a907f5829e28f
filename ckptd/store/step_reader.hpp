// SPDX-License-Identifier: BSD-3-Clause
//
// A step as its user reads it: any rank's regions, and any part of a tensor, put together from whatever parts
// the ranks saved, wherever these lie. Every byte is held against its checksum.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ckptd/store/block.hpp"
#include "ckptd/store/step_source.hpp"
#include "common/result.hpp"

namespace banyan::ckpt {

/// Not thread-safe.
class step_reader {
  public:
    explicit step_reader(std::unique_ptr<step_source> from);

    std::uint64_t step() const { return from_->step(); }
    std::uint32_t world() const { return from_->world(); }
    /// What a rank below world() has saved, of the parts of tensors those, too, that stand in another rank's
    /// file (their offsets are of that). It lives as long as this. errc::not_found: nobody has its shard.
    result<const image_contents*> contents(std::uint32_t rank);
    /// Brings a region, of `wanted.bytes` bytes. With a part: from the tensor of this name, whichever ranks
    /// hold it. Without: from what this rank has saved under the name. errc::conflict: the step has none like
    /// it.
    result<void> fill(const region& wanted, std::uint32_t rank, std::span<std::byte> into);
    /// Whether fill() would find all of a part. Reads headers alone.
    result<void> has(const region& wanted) { return fill_part(wanted, {}); }

  private:
    struct piece {
        std::uint32_t rank = 0;
        const region* of = nullptr;
    };
    struct kept_chunk {
        std::uint32_t rank = 0;
        std::size_t number = 0;
        std::vector<std::byte> bytes;
    };
    result<const shard_file*> shard(std::uint32_t rank);
    /// The image's bytes from `at` on. errc::invalid_input: they are damaged.
    result<void> read(std::uint32_t rank, std::uint64_t at, std::span<std::byte> into);
    result<void> load(const shard_file& of, std::size_t chunk, std::span<std::byte> into);
    result<const kept_chunk*> kept(const shard_file& of, std::size_t chunk, std::size_t bytes);
    result<image_contents> read_contents(const shard_file& of);
    std::optional<std::uint32_t> next_to(const region& wanted) const;
    result<void> read_pieces(std::uint32_t rank);
    /// `into` empty: looks only.
    result<void> fill_part(const region& wanted, std::span<std::byte> into);
    result<void> copy(const piece& from, const block& to, const block& shared, std::span<std::byte> into);

    std::unique_ptr<step_source> from_;
    std::map<std::uint32_t, std::unique_ptr<image_contents>> contents_;
    std::set<std::uint32_t> unread_;  ///< ranks whose parts are in no list yet
    std::unordered_map<std::string, std::vector<piece>> tensors_;
    std::list<kept_chunk> kept_;  ///< the last ones used, the newest first
};

}  // namespace banyan::ckpt
