// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "ckptd/agreement/vote_counter.hpp"
#include "ckptd/buffers/rank_memory.hpp"

namespace test_rank_memory {

using namespace banyan::ckpt;

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
