// SPDX-License-Identifier: BSD-3-Clause
//
// Ways to copy past the cache. Memory serves a few pages side by side faster than one after the other
// (several of its banks are open at once), by how much depends on the machine.
#include <cstdint>

#include "ckptd/buffers/copy.hpp"
#include "common/stream_line.hpp"

namespace banyan::ckpt {

#ifdef __x86_64__
namespace {

constexpr std::size_t line = cache_line, page = 4096;

template <std::size_t pages>
std::size_t side_by_side(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    static_assert(pages * page <= copy_way::most_left);
    std::size_t done = 0;
    for (; done + pages * page <= bytes; done += pages * page)
        for (std::size_t at = done; at < done + page; at += line)
            for (std::size_t p = 0; p < pages * page; p += page) stream_line(to + at + p, from + at + p);
    return done;
}

template <std::size_t pages>
__attribute__((target("avx512f"))) std::size_t side_by_side_512(std::byte* to, const std::byte* from,
                                                                std::size_t bytes) noexcept {
    static_assert(pages * page <= copy_way::most_left);
    constexpr std::size_t ahead = 512;  // within the page: the next one is another stream's
    std::size_t done = 0;
    for (; done + pages * page <= bytes; done += pages * page)
        for (std::size_t at = 0; at < page; at += 2 * line)
            for (std::size_t p = 0; p < pages * page; p += page) {
                const auto* in = from + done + at + p;
                auto* out = to + done + at + p;
                if (at + ahead < page) {
                    _mm_prefetch(reinterpret_cast<const char*>(in + ahead), _MM_HINT_T0);
                    _mm_prefetch(reinterpret_cast<const char*>(in + ahead + line), _MM_HINT_T0);
                }
                const auto a = _mm512_loadu_si512(in), b = _mm512_loadu_si512(in + line);
                _mm512_stream_si512(reinterpret_cast<__m512i*>(out), a);
                _mm512_stream_si512(reinterpret_cast<__m512i*>(out + line), b);
            }
    return done;
}

/// What comes after, such as the buffer's seal, is seen after the copy.
template <auto way>
std::size_t fenced(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    const auto done = way(to, from, bytes);
    _mm_sfence();
    return done;
}

constexpr copy_way ways[] = {
    {"in line", fenced<stream_lines>},
    {"4 pages", fenced<side_by_side<4>>},
    {"4 pages, AVX-512", fenced<side_by_side_512<4>>},
    {"8 pages, AVX-512", fenced<side_by_side_512<8>>},
};
constexpr std::size_t of_every_processor = 2;

}  // namespace

std::span<const copy_way> copy_ways() {
    const std::span all(ways);
    return __builtin_cpu_supports("avx512f") ? all : all.first(of_every_processor);
}
#else
std::span<const copy_way> copy_ways() { return {}; }
#endif

}  // namespace banyan::ckpt
