// SPDX-License-Identifier: BSD-3-Clause
#include "common/uncached_copy.hpp"

#include <algorithm>
#include <cstdint>

#include "common/stream_line.hpp"

namespace banyan {

void uncached_copy(std::span<std::byte> to, std::span<const std::byte> from) {
    std::size_t done = 0;
#ifdef __x86_64__
    done = std::min(from.size(),
                    (cache_line - reinterpret_cast<std::uintptr_t>(to.data()) % cache_line) % cache_line);
    std::copy_n(from.data(), done, to.data());
    done += stream_lines(to.data() + done, from.data() + done, from.size() - done);
    _mm_sfence();  // whoever hears that it is there sees it
#endif
    std::copy(from.begin() + static_cast<std::ptrdiff_t>(done), from.end(),
              to.begin() + static_cast<std::ptrdiff_t>(done));
}

}  // namespace banyan
