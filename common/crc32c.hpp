// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace banyan {

/// CRC-32C (Castagnoli, RFC 3720) of `data`, continuing from `crc` (0 to start). Thread-safe.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t crc = 0);

/// The CRC-32C of two pieces in a row, of which `first` and `second` are the CRCs and the second one has
/// `second_bytes` bytes: without a look at the bytes, in some twenty multiplications of polynomials.
std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes);

}  // namespace banyan
