// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/buffers/joined.hpp"

#include <cerrno>
#include <numeric>

namespace banyan::ckpt {

std::vector<joined_piece> joined_pieces(const joined_shape& shape, std::span<const std::uint64_t> each) {
    const auto stride = std::accumulate(each.begin(), each.end(), std::uint64_t{0});
    std::vector<joined_piece> out;
    if (shape.header != 0) out.push_back({0, 0, 0, shape.header});
    for (std::uint64_t buffer = 0; buffer < shape.buffers; ++buffer) {
        auto to = shape.header + buffer * stride;
        for (std::size_t part = 0; part < each.size(); ++part) {
            const auto before = part == 0 ? shape.header : 0;
            out.push_back({part, before + buffer * each[part], to, each[part]});
            to += each[part];
        }
    }
    return out;
}

result<mapping> joined_space(const joined_shape& shape, std::span<const std::uint64_t> each) {
    const auto stride = std::accumulate(each.begin(), each.end(), std::uint64_t{0});
    const auto bytes = shape.header + shape.buffers * stride;
    const auto more = bytes < huge_page_bytes ? 0 : huge_page_bytes;
    void* at = ::mmap(nullptr, bytes + more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return fail_errno("no address space for the checkpoint memory", errno);
    if (more == 0) return mapping(at, bytes);
    auto* const first = static_cast<std::byte*>(at);
    const auto before =
        round_up(reinterpret_cast<std::uintptr_t>(at), more) - reinterpret_cast<std::uintptr_t>(at);
    const auto whole = round_up(bytes, page_bytes);
    if (before != 0) ::munmap(first, before);
    if (bytes + more > before + whole) ::munmap(first + before + whole, bytes + more - before - whole);
    return mapping(first + before, bytes);
}

}  // namespace banyan::ckpt
