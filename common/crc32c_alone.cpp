// SPDX-License-Identifier: BSD-3-Clause
#include "common/crc32c_alone.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "common/crc32c_polynomial.hpp"

namespace banyan {
namespace {

using bytes = std::span<const std::byte>;
using crc32c_polynomial::one;
using crc32c_polynomial::power;

std::uint32_t by_table(std::uint32_t state, bytes data) {
    static constexpr auto table = [] {
        std::array<std::uint32_t, 256> out{};
        for (std::uint32_t i = 0; i < out.size(); ++i) {
            out[i] = i;
            for (int bit = 0; bit < 8; ++bit) out[i] = crc32c_polynomial::times_x(out[i]);
        }
        return out;
    }();
    for (const auto b : data) state = state >> 8 ^ table[(state ^ std::to_integer<std::uint32_t>(b)) & 0xff];
    return state;
}

#if defined(__x86_64__)
#define BANYAN_WITH_CRC __attribute__((target("crc32,sse4.2,pclmul")))

std::uint64_t word_at(const std::byte* from) {
    std::uint64_t out = 0;
    std::memcpy(&out, from, sizeof out);
    return out;
}

// The CRC of what `state` is of with as many zero bytes behind as `shift` says: x^(8 n - 33). The carry-less
// product has one bit too few, and the instruction multiplies by x^32.
BANYAN_WITH_CRC std::uint64_t with_zeros(std::uint64_t state, std::uint32_t shift) {
    const auto a = _mm_cvtsi64_si128(static_cast<long long>(state));
    const auto product = _mm_clmulepi64_si128(a, _mm_cvtsi64_si128(shift), 0);
    return _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(product)));
}

// Three pieces side by side: the instruction takes three cycles, and one begins in each.
template <std::size_t piece>
BANYAN_WITH_CRC std::uint64_t in_threes(std::uint64_t state, bytes& data) {
    constexpr auto over_one = power(one >> 1, 8 * piece - 33), over_two = power(one >> 1, 16 * piece - 33);
    for (; data.size() >= 3 * piece; data = data.subspan(3 * piece)) {
        const auto* at = data.data();
        std::uint64_t second = 0, third = 0;
        for (std::size_t i = 0; i < piece; i += 8) {
            state = _mm_crc32_u64(state, word_at(at + i));
            second = _mm_crc32_u64(second, word_at(at + piece + i));
            third = _mm_crc32_u64(third, word_at(at + 2 * piece + i));
        }
        state = with_zeros(state, over_two) ^ with_zeros(second, over_one) ^ third;
    }
    return state;
}

BANYAN_WITH_CRC std::uint32_t by_instruction(std::uint64_t state, bytes data) {
    state = in_threes<4096>(state, data);
    state = in_threes<256>(state, data);
    for (; data.size() >= 8; data = data.subspan(8)) state = _mm_crc32_u64(state, word_at(data.data()));
    for (const auto b : data)
        state = _mm_crc32_u8(static_cast<std::uint32_t>(state), std::to_integer<unsigned char>(b));
    return static_cast<std::uint32_t>(state);
}

bool has_instruction() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_2) != 0 && (c & bit_PCLMUL) != 0;
}
#else
std::uint32_t by_instruction(std::uint32_t state, bytes data) { return by_table(state, data); }
bool has_instruction() { return false; }
#endif

}  // namespace

std::uint32_t crc32c_by_table(bytes data, std::uint32_t crc) { return ~by_table(~crc, data); }

std::uint32_t crc32c_alone(bytes data, std::uint32_t crc) {
    static const bool fast = has_instruction();
    return fast ? ~by_instruction(~crc, data) : crc32c_by_table(data, crc);
}

}  // namespace banyan
