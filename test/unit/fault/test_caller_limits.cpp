// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "fault/controller/caller_limits.hpp"

namespace test_caller_limits {

using namespace banyan::fault;

TEST_CASE("a user has his share, root always has room", "[fault]") {
    caller_limits limits(500);
    for (std::size_t n = 0; n < caller_limits::per_user; ++n) REQUIRE(limits.enter(1000));
    CHECK_FALSE(limits.enter(1000));
    CHECK(limits.enter(1001));
    for (uid_t uid = 2000; limits.enter(uid); ++uid) REQUIRE(uid < 3000);
    CHECK_FALSE(limits.enter(4000));  // all users' places are taken
    for (std::size_t n = 0; n + 1 < caller_limits::privileged; ++n) REQUIRE(limits.enter(0));
    CHECK(limits.enter(500));
    CHECK_FALSE(limits.enter(0));
    limits.leave(1000);
    CHECK(limits.enter(1000));
    limits.leave(0);
    CHECK(limits.enter(0));
}

TEST_CASE("an idle connection makes room for the first of a user, whoever has how many uids", "[fault]") {
    caller_limits limits(500);
    for (uid_t uid = 200'000; limits.enter(uid); ++uid) REQUIRE(uid < 300'000);
    CHECK(limits.comes_first(1000));
    CHECK_FALSE(limits.comes_first(0));
    CHECK(limits.enter(1000, true));
    CHECK_FALSE(limits.comes_first(1000));
    // What waits for changes is not idle: half of the places are never taken by that.
    std::size_t polls = 0;
    for (uid_t uid = 200'000; uid < 200'096; ++uid) polls += limits.begin_poll(uid);
    CHECK(polls == caller_limits::all_polls);
    limits.end_poll(200'000);
    CHECK(limits.begin_poll(200'095));
}

TEST_CASE("a user's requests are answered one after the other", "[fault]") {
    caller_limits limits(500);
    REQUIRE(limits.enter(1000));
    REQUIRE(limits.enter(0));
    const caller_limits::clock::time_point now{std::chrono::hours(1)};
    CHECK(limits.turn(1000, now) == now);
    CHECK(limits.turn(1000, now) == now + caller_limits::between_requests);
    CHECK(limits.turn(1000, now) == now + 2 * caller_limits::between_requests);
    CHECK(limits.turn(0, now) == now);
    CHECK(limits.turn(0, now) == now);
    for (std::size_t n = 0; n < caller_limits::polls_per_user; ++n) REQUIRE(limits.begin_poll(1000));
    CHECK_FALSE(limits.begin_poll(1000));
    limits.end_poll(1000);
    CHECK(limits.begin_poll(1000));
}

TEST_CASE("users together take a tenth of the controller's time", "[fault]") {
    caller_limits limits(500);
    for (const uid_t uid : {1000u, 1001u, 0u}) REQUIRE(limits.enter(uid));
    const caller_limits::clock::time_point now{std::chrono::hours(1)};
    const std::chrono::milliseconds busy(100);
    CHECK(limits.turn(1000, now) == now);
    limits.took(1000, busy);
    CHECK(limits.turn(1001, now) == now);  // it was asked before anybody knew the price
    CHECK(limits.turn(1001, now) == now + 9 * busy);
    CHECK(limits.turn(1000, now) == now + 18 * busy);
    CHECK(limits.turn(0, now) == now);
    // Cheap answers make the pause short again, in time.
    for (int i = 0; i < 60; ++i) limits.took(1000, std::chrono::microseconds(1));
    const auto later = now + std::chrono::hours(1);
    CHECK(limits.turn(1000, later) == later);
    CHECK(limits.turn(1001, later) < later + std::chrono::milliseconds(10));
    // What root asks costs users nothing.
    limits.took(0, std::chrono::seconds(10));
    CHECK(limits.turn(1000, later + std::chrono::seconds(1)) == later + std::chrono::seconds(1));
}

}  // namespace test_caller_limits
