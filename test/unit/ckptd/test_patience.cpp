// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "ckptd/daemon/patience.hpp"

namespace test_patience {

using namespace std::chrono_literals;
using banyan::ckpt::patience;

namespace {

constexpr patience::bounds bounds{8, 100ms, 5s};

patience after(std::initializer_list<patience::duration> took) {
    patience p;
    for (const auto t : took) p.note(t);
    return p;
}

}  // namespace

TEST_CASE("nothing is known of the first ones: they may take as long as can be", "[patience]") {
    CHECK(patience().limit(bounds) == 5s);
    CHECK(after({1ms, 1ms, 1ms}).limit(bounds) == 5s);
    CHECK(after({1ms, 1ms, 1ms, 1ms}).limit(bounds) == 100ms);
}

TEST_CASE("patience is a multiple of the longest of the last times, within bounds", "[patience]") {
    CHECK(after({20ms, 30ms, 20ms, 20ms}).limit(bounds) == 240ms);
    CHECK(after({0ms, 0ms, 0ms, 0ms}).limit(bounds) == 100ms);
    CHECK(after({1ms, 1ms, 2s, 1ms}).limit(bounds) == 5s);
    CHECK(after({1ms, 1ms, patience::duration::max(), 1ms}).limit(bounds) == 5s);
    // A clock that jumps back makes nobody impatient.
    CHECK(after({-5s, 20ms, 20ms, 20ms}).limit(bounds) == 160ms);
    CHECK(after({1ms, 1ms, 1ms, 1ms}).limit({8, 3s, 2s}) == 2s);
}

TEST_CASE("what was slow once is forgotten after eight more", "[patience]") {
    auto p = after({400ms, 1ms, 1ms, 1ms});
    for (int i = 0; i < 4; ++i) p.note(1ms);
    CHECK(p.limit(bounds) == 3200ms);
    p.note(1ms);
    CHECK(p.limit(bounds) == 100ms);
}

TEST_CASE("whoever is new is given time anew", "[patience]") {
    auto p = after({1ms, 1ms, 1ms, 1ms, 1ms});
    p.forget();
    CHECK(p.limit(bounds) == 5s);
    for (int i = 0; i < 3; ++i) p.note(20ms);
    CHECK(p.limit(bounds) == 5s);
    p.note(20ms);
    CHECK(p.limit(bounds) == 160ms);
}

}  // namespace test_patience
