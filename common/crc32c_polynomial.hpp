// SPDX-License-Identifier: BSD-3-Clause
//
// Polynomials over GF(2), modulo that of CRC-32C, bit 31 being the coefficient of x^0.
#pragma once

#include <cstdint>

namespace banyan::crc32c_polynomial {

constexpr std::uint32_t modulus = 0x82f63b78;
constexpr std::uint32_t one = 0x80000000;

constexpr std::uint32_t times_x(std::uint32_t a) { return a & 1 ? a >> 1 ^ modulus : a >> 1; }

constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
    std::uint32_t out = 0;
    for (; b != 0; b <<= 1) {
        if (b & one) out ^= a;
        a = times_x(a);
    }
    return out;
}

/// `base` to the power `n`.
constexpr std::uint32_t power(std::uint32_t base, std::uint64_t n) {
    std::uint32_t out = one;
    for (; n != 0; n >>= 1) {
        if (n & 1) out = product(out, base);
        base = product(base, base);
    }
    return out;
}

}  // namespace banyan::crc32c_polynomial
