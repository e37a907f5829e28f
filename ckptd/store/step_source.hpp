// SPDX-License-Identifier: BSD-3-Clause
//
// Where the shards of one step lie, however they are kept. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ckptd/store/store.hpp"
#include "common/result.hpp"

namespace banyan::ckpt {

class step_source {
  public:
    virtual ~step_source() = default;
    virtual std::uint64_t step() const = 0;
    /// Ranks that saved it.
    virtual std::uint32_t world() const = 0;
    struct saver {
        std::uint64_t job = 0, generation = 0;
    };
    virtual saver saved_by() const = 0;
    /// The shard of a rank below world(); null where nobody has it, though other ranks may have saved the
    /// same parts. It lives as long as this.
    virtual result<const shard_file*> shard(std::uint32_t rank) = 0;
    /// A chunk as it lies there; the caller holds it against its checksum. `into` has the chunk's size.
    virtual result<void> read(const shard_file& of, std::size_t chunk, std::span<std::byte> into) = 0;
    /// A shard's place, for messages.
    virtual std::string name_of(std::uint32_t rank) const = 0;
};

/// A committed step of a directory, read with the caller's own rights. Without `step` the newest one that has
/// a COMMIT: where that is damaged it is the error, and no older one is taken without a word. `dir` may be
/// the path of a milestone, too (milestones.hpp). errc::not_found: there is none.
result<std::unique_ptr<step_source>> open_stored_step(const std::string& dir,
                                                      std::optional<std::uint64_t> step);

}  // namespace banyan::ckpt
