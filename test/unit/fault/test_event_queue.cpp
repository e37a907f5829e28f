// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "fault/agent/event_queue.hpp"
#include "test/unit/fault/lines.hpp"

using namespace banyan::fault;
using namespace banyan::fault::testing;

TEST_CASE("events stay until they are confirmed", "[fault]") {
    event_queue q;
    for (unsigned n = 0; n < 3; ++n) CHECK(q.push(event_of(gpu_line(static_cast<int>(n), "79, x"), 1000, n)));
    CHECK(q.front(2).size() == 2);
    CHECK(q.front(2)[0].position == 0);
    q.confirm(2);
    CHECK(q.front(10).size() == 1);
    CHECK(q.front(10)[0].position == 2);
}

TEST_CASE("a storm of equal lines keeps memory flat and is counted", "[fault]") {
    std::uint64_t told = 0;
    event_queue storm;
    const auto line = event_of(gpu_line(1, "95, Uncontained: x"), 1000);
    for (unsigned n = 0; n < 10'000; ++n) storm.push(line);
    for (int gpu = 2; gpu < 8; ++gpu)
        CHECK(storm.push(event_of(gpu_line(gpu, "95, y"), 1000)));  // none of the others is lost
    storm.flush_repeats(20'000);
    for (const auto& e : storm.front(1000)) told += 1 + e.repeats;
    CHECK(told == 10'006);
    CHECK(storm.size() < 20);
}

TEST_CASE("a full queue gives up what matters least", "[fault]") {
    event_queue q(4);
    for (unsigned n = 0; n < 4; ++n) q.push(event_of(gpu_line(static_cast<int>(n), "13, x"), 1000, n));
    CHECK(q.push(event_of(gpu_line(7, "79, x"), 1000, 99)));
    CHECK(q.size() == 4);
    CHECK(q.dropped() == 1);
    CHECK(q.front(10).back().fault.code == 79);
    q.push(event_of(gpu_line(8, "13, x"), 1000, 100));
    CHECK(q.size() == 4);
    CHECK(q.front(10).back().fault.code == 79);
}

TEST_CASE("what waited while the clock was set is as old as before", "[fault]") {
    event e;
    e.line_ms = 1'000'000;
    e.clock_gap_ms = 400'000;
    CHECK(by_the_clock_of_now(e, 400'000).line_ms == 1'000'000);
    CHECK(by_the_clock_of_now(e, 400'003).line_ms == 1'000'000);  // two clocks are not read at one moment
    CHECK(by_the_clock_of_now(e, 1'600'000).line_ms == 2'200'000);
    CHECK(by_the_clock_of_now(e, -200'000).line_ms == 400'000);
    CHECK(by_the_clock_of_now(e, -2'000'000).line_ms == 0);
}
