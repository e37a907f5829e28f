// SPDX-License-Identifier: BSD-3-Clause
#include "common/uncached_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace banyan {
namespace {

#ifdef __x86_64__
constexpr std::size_t line = 64;

// Returns what has been copied.
std::size_t copy_lines(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    std::size_t at = 0;
    for (; at + line <= bytes; at += line) {
        const auto* in = reinterpret_cast<const __m128i*>(from + at);
        auto* out = reinterpret_cast<__m128i*>(to + at);
        const auto a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
        const auto c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    _mm_sfence();  // whoever hears that it is there sees it
    return at;
}
#endif

}  // namespace

void uncached_copy(std::span<std::byte> to, std::span<const std::byte> from) {
    std::size_t done = 0;
#ifdef __x86_64__
    done = std::min(from.size(), (line - reinterpret_cast<std::uintptr_t>(to.data()) % line) % line);
    std::copy_n(from.data(), done, to.data());
    done += copy_lines(to.data() + done, from.data() + done, from.size() - done);
#endif
    std::copy(from.begin() + static_cast<std::ptrdiff_t>(done), from.end(),
              to.begin() + static_cast<std::ptrdiff_t>(done));
}

}  // namespace banyan
