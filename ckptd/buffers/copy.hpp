// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace banyan::ckpt {

/// Copies `bytes` from `from` to `to`, which do not overlap, at the speed of memory whatever the two
/// addresses are. memcpy takes up to four times as long on AMD's Zen where `to` lies a little ahead of `from`
/// within a page, as a malloc'ed region does that comes back from a buffer. What is copied is not left in the
/// cache. Of the ways to do that each is tried with pieces of the first large copies of the process, and the
/// one that was fastest is kept. Thread-safe.
void copy_state(std::byte* to, const std::byte* from, std::size_t bytes);

/// A way past the cache that this processor can go.
struct copy_way {
    std::string_view name;
    /// Copies whole blocks, and returns their bytes; what is left is less than `most_left`. `to` lies at the
    /// beginning of a cache line of 64 bytes.
    std::size_t (*copy)(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
    static constexpr std::size_t most_left = 32 * 1024;
};
/// The simplest is the first. None where the processor's are not known.
std::span<const copy_way> copy_ways();

}  // namespace banyan::ckpt
