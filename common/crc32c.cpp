// SPDX-License-Identifier: BSD-3-Clause
#include "common/crc32c.hpp"

#include <algorithm>

#include <isa-l/crc.h>

namespace banyan {
namespace {

// Polynomials over GF(2), modulo that of CRC-32C, bit 31 being the coefficient of x^0.
constexpr std::uint32_t polynomial = 0x82f63b78;
constexpr std::uint32_t one = 0x80000000;

constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
    std::uint32_t out = 0;
    for (; b != 0; b <<= 1) {
        if (b & one) out ^= a;
        a = a & 1 ? a >> 1 ^ polynomial : a >> 1;  // times x
    }
    return out;
}

}  // namespace

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
    std::uint32_t power = one >> 8;
    for (; second_bytes != 0; second_bytes >>= 1) {
        if (second_bytes & 1) first = product(first, power);
        power = product(power, power);
    }
    return first ^ second;
}

}  // namespace banyan
