// SPDX-License-Identifier: BSD-3-Clause
//
// A committed step as its user reads it: any rank's regions, and any part of a tensor, put together from
// whatever parts the ranks saved. Every byte is held against its checksum. Nothing of the job need be there
// any more.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ckptd/store/block.hpp"
#include "ckptd/store/store.hpp"
#include "common/result.hpp"

namespace banyan::ckpt {

/// One shard's bytes, in the order in which they are wanted. Keeps its file open, and the chunk that was read
/// last.
class shard_reader {
  public:
    static result<shard_reader> open(const std::string& dir, std::uint64_t step, const shard_file& file);
    /// The image's bytes from `at` on. errc::invalid_input: they are damaged.
    result<void> read(std::uint64_t at, std::span<std::byte> into);

  private:
    result<void> load(std::size_t chunk, std::span<std::byte> into);

    std::string path_;
    unique_fd fd_;
    shard_file file_;
    std::vector<std::byte> kept_;
    std::optional<std::size_t> kept_chunk_;
};

/// Not thread-safe.
class step_reader {
  public:
    /// Without `step` the newest one that has a COMMIT: where that is damaged it is the error, and no older
    /// one is taken without a word. errc::not_found: there is none.
    static result<step_reader> open(const std::string& dir, std::optional<std::uint64_t> step);

    std::uint64_t step() const { return summary_.step; }
    std::uint32_t world() const { return summary_.world; }
    /// What a rank below world() has saved. It lives as long as this.
    result<const image_contents*> contents(std::uint32_t rank);
    /// Brings a region, of `wanted.bytes` bytes. With a part: from the tensor of this name, whichever ranks
    /// hold it. Without: from what this rank has saved under the name. errc::conflict: the step has none like
    /// it.
    result<void> fill(const region& wanted, std::uint32_t rank, std::span<std::byte> into);

  private:
    struct piece {
        std::uint32_t rank = 0;
        const region* of = nullptr;
    };
    result<shard_reader*> shard(std::uint32_t rank);
    result<const std::vector<piece>*> pieces_of(const std::string& name);
    result<void> fill_part(const region& wanted, std::span<std::byte> into);
    result<void> copy(const piece& from, const block& to, const block& shared, std::span<std::byte> into);

    std::string dir_;
    step_summary summary_;
    std::vector<shard_file> files_;
    std::map<std::uint32_t, std::unique_ptr<image_contents>> contents_;
    std::optional<std::unordered_map<std::string, std::vector<piece>>> tensors_;
    std::list<std::pair<std::uint32_t, shard_reader>> open_;  ///< the last ones used, the newest first
};

}  // namespace banyan::ckpt
