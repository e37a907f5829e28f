// SPDX-License-Identifier: BSD-3-Clause
#include "common/crc32c.hpp"

#include <algorithm>

#include <isa-l/crc.h>

#include "common/crc32c_polynomial.hpp"

namespace banyan {

std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t crc) {
    // ISA-L takes an int length and leaves the pre- and post-inversion to the caller.
    constexpr std::size_t chunk = std::size_t{1} << 30;
    std::uint32_t state = ~crc;
    while (!data.empty()) {
        const auto part = data.first(std::min(chunk, data.size()));
        auto* bytes = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(part.data()));
        state = crc32_iscsi(bytes, static_cast<int>(part.size()), state);
        data = data.subspan(part.size());
    }
    return ~state;
}

// Bytes behind a message multiply its CRC by x^8 each.
std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) {
    using namespace crc32c_polynomial;
    return product(first, power(one >> 8, second_bytes)) ^ second;
}

}  // namespace banyan
