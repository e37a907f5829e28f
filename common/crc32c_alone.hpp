// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace banyan {

/// As crc32c(), without ISA-L: for the library of training processes, which must load where that is not
/// installed. As fast where the bytes come from memory or storage, half as fast in the cache. Thread-safe.
std::uint32_t crc32c_alone(std::span<const std::byte> data, std::uint32_t crc = 0);
/// What that does on a processor without an instruction for it, byte by byte.
std::uint32_t crc32c_by_table(std::span<const std::byte> data, std::uint32_t crc = 0);

}  // namespace banyan
