// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "ckptd/buffers/rank_memory.hpp"
#include "ckptd/daemon/ledger.hpp"

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

TEST_CASE("a checkpoint is complete with the last rank's vote, replicated only with all", "[ckptd]") {
    vote_ledger v;
    const copy_key key{2, 10};
    CHECK_FALSE(v.vote(key, 0, true, 3).complete);
    CHECK_FALSE(v.vote(key, 0, true, 3).complete);  // twice is once
    CHECK_FALSE(v.vote(key, 1, false, 3).complete);
    const auto done = v.vote(key, 2, true, 3);
    CHECK(done.complete);
    CHECK_FALSE(done.replicated);
    CHECK(v.vote(key, 1, true, 3).replicated);
    v.vote({2, 11}, 0, true, 3);
    v.settle(key);
    CHECK(v.open() == 1);
    for (std::uint64_t step = 0; step < 1000; ++step) v.vote({3, step}, 0, true, 3);
    CHECK(v.open() <= 32);
}

TEST_CASE("the oldest incomplete checkpoint names the ranks that it waits for", "[ckptd]") {
    vote_ledger v;
    const copy_key first{1, 10}, second{1, 11};
    v.vote(second, 0, false, 3);
    v.vote(first, 1, true, 3);
    CHECK(v.missing() == std::pair{first, std::vector<std::uint32_t>{0, 2}});
    v.settle(first);
    CHECK(v.missing() == std::pair{second, std::vector<std::uint32_t>{1, 2}});
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
