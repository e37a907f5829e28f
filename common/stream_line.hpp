// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace banyan {
constexpr std::size_t cache_line = 64;  ///< bytes
}

#ifdef __x86_64__
#include <immintrin.h>

namespace banyan {

/// Copies a cache line past the cache. `to` lies at the beginning of one. Seen by others in order only after
/// _mm_sfence().
inline void stream_line(std::byte* to, const std::byte* from) noexcept {
    const auto* in = reinterpret_cast<const __m128i*>(from);
    auto* out = reinterpret_cast<__m128i*>(to);
    const auto a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
    const auto c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
}

/// As many whole lines as there are in `bytes`; returns what has been copied.
inline std::size_t stream_lines(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    std::size_t at = 0;
    for (; at + cache_line <= bytes; at += cache_line) stream_line(to + at, from + at);
    return at;
}

}  // namespace banyan
#endif
