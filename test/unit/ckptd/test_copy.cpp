// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "ckptd/buffers/copy.hpp"

using namespace banyan::ckpt;

TEST_CASE("a copy is exact and touches nothing else, whatever size and addresses", "[ckptd]") {
    constexpr std::size_t room = 200'000, margin = 128;
    std::vector<std::byte> from(room), to(room);
    for (std::size_t i = 0; i < room; ++i) from[i] = static_cast<std::byte>(i * 131 + i / 251);
    const std::byte untouched{0xee};
    for (const std::size_t bytes : {0, 1, 63, 64, 65, 4096, 65'535, 65'536, 65'537, 65'600, 131'071, 150'000})
        for (const std::size_t source : {0, 1, 16, 63})
            for (const std::size_t target : {0, 1, 8, 16, 48, 63}) {
                std::fill(to.begin(), to.end(), untouched);
                auto* const at = to.data() + margin + target;
                copy_state(at, from.data() + source, bytes);
                INFO(bytes << " bytes from +" << source << " to +" << target);
                CHECK(std::equal(at, at + bytes, from.data() + source));
                CHECK(std::all_of(to.data(), at, [&](auto b) { return b == untouched; }));
                CHECK(std::all_of(at + bytes, to.data() + room, [&](auto b) { return b == untouched; }));
            }
}
