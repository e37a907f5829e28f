// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <future>
#include <vector>

#include <catch2/catch.hpp>

#include "ckptd/buffers/copy.hpp"
#include "ckptd/buffers/memory.hpp"

namespace test_copy {

using namespace banyan::ckpt;

TEST_CASE("each way past the cache copies whole blocks and nothing else", "[ckptd]") {
    constexpr std::size_t room = 200'000;
    std::vector<std::byte> from(room);
    for (std::size_t i = 0; i < room; ++i) from[i] = static_cast<std::byte>(i * 131 + i / 251);
    const std::byte untouched{0xee};
    for (const auto& way : copy_ways())
        for (const std::size_t bytes : {0, 63, 64, 4096, 16'383, 16'384, 32'768, 100'000})
            for (const std::size_t source : {0, 1, 16}) {
                std::vector<std::byte> to(room, untouched);
                auto* const at = to.data() + (64 - reinterpret_cast<std::uintptr_t>(to.data()) % 64);
                const auto done = way.copy(at, from.data() + source, bytes);
                INFO(way.name << ", " << bytes << " bytes from +" << source);
                CHECK(done <= bytes);
                CHECK(bytes - done < copy_way::most_left);
                CHECK(std::equal(at, at + done, from.data() + source));
                CHECK(std::all_of(to.data(), at, [&](auto b) { return b == untouched; }));
                CHECK(std::all_of(at + done, to.data() + room, [&](auto b) { return b == untouched; }));
            }
}

// Enough that every way has had its turns, and the one that is kept.
TEST_CASE("copies are exact while the ways are measured, by several threads at once", "[ckptd]") {
    constexpr std::size_t bytes = (24u << 20) + 12'345;
    const auto copy_some = [](std::byte seed) {
        std::vector<std::byte> from(bytes), to(bytes);
        bool exact = true;
        for (int i = 0; i < 5; ++i) {
            for (std::size_t at = 0; at < bytes; at += 97)
                from[at] = static_cast<std::byte>(at * 7 + i) ^ seed;
            copy_state(to.data(), from.data(), bytes);
            exact = exact && from == to;
        }
        return exact;
    };
    auto other = std::async(std::launch::async, copy_some, std::byte{1});
    CHECK(copy_some(std::byte{2}));
    CHECK(other.get());
}

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

TEST_CASE("a copy with checksums is exact, and they are those of its chunks", "[ckptd]") {
    std::vector<std::byte> from(2 * chunk_bytes + 20'001);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 131 + i / 251);
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, chunk_bytes, chunk_bytes + 1, from.size()}) {
        const auto some = std::span<const std::byte>(from).first(bytes);
        std::vector<std::byte> to(bytes);
        CHECK(copy_with_checksums(to, some) == chunk_checksums(some));
        CHECK(std::equal(to.begin(), to.end(), some.begin()));
    }
}

}  // namespace test_copy
