// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstring>
#include <vector>

#include <catch2/catch.hpp>

#include "ckptd/agreement/vote_counter.hpp"
#include "ckptd/buffers/rank_memory.hpp"

namespace test_rank_memory {

using namespace banyan::ckpt;

// A container's library may be of another release. Whoever has to change a line here raises
// local_protocol.newest.
TEST_CASE("the page of words is as the local protocol has it", "[ckptd]") {
    CHECK(local_protocol == protocol_range{1, 1});
    using page = rank_memory_header;
    const std::vector<std::size_t> places{offsetof(page, magic),
                                          offsetof(page, buffers),
                                          offsetof(page, rank),
                                          offsetof(page, buffer_bytes),
                                          offsetof(page, job),
                                          offsetof(page, memory_step),
                                          offsetof(page, replicated_step),
                                          offsetof(page, durable_step),
                                          offsetof(page, event),
                                          offsetof(page, warning_count),
                                          offsetof(page, warning),
                                          offsetof(page, buffer),
                                          offsetof(page, stalled),
                                          offsetof(page, round),
                                          offsetof(page, warnings_read),
                                          offsetof(page, beat),
                                          offsetof(page, seals_wanted),
                                          offsetof(page, rank_beat)};
    CHECK(places == std::vector<std::size_t>{0, 8, 12, 16, 24, 32, 40, 48, 56, 60, 64, 576, 1088, 1096, 1104,
                                             1112, 1120, 1152});
    CHECK(sizeof(page) == 1472);
    CHECK(sizeof(buffer_header) == 64);
    CHECK(offsetof(buffer_header, released) == 40);
    const auto mine = rank_memory_magic();
    CHECK(std::memcmp(&mine, "BANBUFF\1", 8) == 0);
    CHECK(is_rank_memory(mine));
    CHECK_FALSE(is_rank_memory(rank_memory_magic(local_protocol.newest + 1)));
    CHECK_FALSE(is_rank_memory(rank_memory_magic(local_protocol.oldest - 1)));
    CHECK_FALSE(is_rank_memory(mine ^ 1));
    CHECK_FALSE(is_rank_memory(0));
}

TEST_CASE("two releases speak the newest protocol that both know", "[ckptd]") {
    constexpr protocol_range old{1, 2}, now{2, 4}, later{4, 9}, far{6, 9};
    CHECK(common_protocol(old, now) == 2);
    CHECK(common_protocol(now, old) == 2);
    CHECK(common_protocol(now, now) == 4);
    CHECK(common_protocol(later, now) == 4);
    CHECK_FALSE(common_protocol(far, now));
    CHECK_FALSE(common_protocol(now, far));
    CHECK_FALSE(common_protocol(old, later));
    CHECK(in_words(old) == "protocol 1 to 2");
    CHECK(in_words({3, 3}) == "protocol 3");
}

TEST_CASE("a buffer is whole only when its sequence is even and its nonce fits", "[ckptd]") {
    buffer_header h{};
    CHECK_FALSE(read_buffer(h));
    CHECK(buffer_is_free(h));
    begin_write(h);
    CHECK_FALSE(read_buffer(h));
    CHECK(buffer_is_free(h));  // torn: whoever wrote it is gone
    const auto first = end_write(h, 5, 77, 100);
    REQUIRE(read_buffer(h));
    CHECK(*read_buffer(h) == buffer_view{first, 5, 77, 100});
    CHECK_FALSE(buffer_is_free(h));
    h.released.store(first);
    CHECK(buffer_is_free(h));
    begin_write(h);
    CHECK_FALSE(read_buffer(h));
    begin_write(h);  // the next process after a kill
    const auto second = end_write(h, 6, 77, 100);
    CHECK(second > first);
    CHECK_FALSE(buffer_is_free(h));
    h.step.store(9);  // a header that was changed afterwards
    CHECK_FALSE(read_buffer(h));
}

TEST_CASE("a buffer that the daemon fills is neither free nor sealed until it is full", "[ckptd]") {
    buffer_header h{};
    CHECK(buffer_is_free(h));
    begin_fill(h);
    CHECK_FALSE(buffer_is_free(h));
    CHECK_FALSE(read_buffer(h));
    const auto sequence = end_fill(h, 7, 42, 100);
    CHECK_FALSE(buffer_is_free(h));
    REQUIRE(read_buffer(h));
    CHECK(read_buffer(h)->step == 7);
    h.released.store(sequence);
    CHECK(buffer_is_free(h));
    begin_write(h);
    CHECK(end_write(h, 8, 42, 100) > sequence);
}

TEST_CASE("a step that lacks votes names the ranks that it waits for", "[ckptd]") {
    agreement::vote_counter v(3);
    const copy_key first{1, 10}, second{1, 11};
    v.count(1, {}, {0, {{second, agreement::level::memory}}, 11, 11});
    v.count(1, {}, {1, {{first, agreement::level::replicated}}, 10, 10});
    CHECK(v.open() == std::vector{first, second});
    CHECK(v.missing(first) == std::vector<std::uint32_t>{0, 2});
    CHECK(v.missing(second) == std::vector<std::uint32_t>{1, 2});
    CHECK(v.missing({1, 12}).empty());
}

TEST_CASE("generations: a requeue and a later step are newer, whatever the step numbers", "[ckptd]") {
    CHECK(make_generation(0, std::nullopt) > 0);
    CHECK(make_generation(0, 0) > make_generation(0, std::nullopt));
    CHECK(make_generation(0, 8) > make_generation(0, 7));
    CHECK(make_generation(1, std::nullopt) > make_generation(0, 4'000'000'000));
    CHECK(copy_key{2, 1} > copy_key{1, 100});
    CHECK(has_step(make_generation(0, 0)));
    CHECK_FALSE(has_step(make_generation(3, std::nullopt)));
}

}  // namespace test_rank_memory
