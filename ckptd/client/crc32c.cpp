// SPDX-License-Identifier: BSD-3-Clause
//
// The library sums up without ISA-L.
#include "common/crc32c.hpp"

#include "common/crc32c_alone.hpp"

namespace banyan {

std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t crc) { return crc32c_alone(data, crc); }

}  // namespace banyan
