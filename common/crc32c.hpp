// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace banyan {

/// CRC-32C (Castagnoli, RFC 3720) of `data`, continuing from `crc` (0 to start). Thread-safe.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t crc = 0);

}  // namespace banyan
