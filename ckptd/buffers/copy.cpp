// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/buffers/copy.hpp"

#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace banyan::ckpt {
namespace {

#ifdef __SSE2__
constexpr std::size_t line = 64;
constexpr std::size_t worth_streaming = 64 * 1024;  // below, memcpy stays within the cache and wins

/// Whole cache lines past the cache; `to` is aligned to one. Returns the bytes copied.
std::size_t stream_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
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
    _mm_sfence();  // what comes after, such as the buffer's seal, is seen after the copy
    return at;
}
#endif

}  // namespace

void copy_state(std::byte* to, const std::byte* from, std::size_t bytes) {
#ifdef __SSE2__
    if (bytes >= worth_streaming) {
        const auto head = (line - reinterpret_cast<std::uintptr_t>(to) % line) % line;
        std::memcpy(to, from, head);
        const auto done = head + stream_lines(to + head, from + head, bytes - head);
        to += done;
        from += done;
        bytes -= done;
    }
#endif
    if (bytes != 0) std::memcpy(to, from, bytes);
}

}  // namespace banyan::ckpt
