// SPDX-License-Identifier: BSD-3-Clause
//
// Where ranks stand, by their heartbeats, and which of them keeps the others waiting.
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "ckptd/daemon/standing.hpp"

namespace test_standing {

using namespace banyan::ckpt;
using namespace std::chrono_literals;
using banyan::clock;

namespace {

/// A rank's page, and the time by which it says something.
struct page {
    std::unique_ptr<rank_memory_header::heartbeat> beat = std::make_unique<rank_memory_header::heartbeat>();
    std::chrono::nanoseconds now = 1000s;

    void says(std::chrono::nanoseconds after, std::uint64_t step, std::uint32_t phase) {
        now += after;
        write_beat(*beat, step, phase, static_cast<std::uint64_t>(now.count()));
    }
    std::optional<standing> after(std::chrono::nanoseconds time) const {
        return standing_of(*beat, 3, clock::time_point(now + time));
    }
    bool is_late(std::chrono::nanoseconds time) const { return after(time).value().late; }
};

/// Five steps, which take `each` but for the first one.
page trained(std::chrono::nanoseconds first, std::chrono::nanoseconds each, std::uint32_t phase = 0) {
    page out;
    out.says(0s, 0, phase);
    for (std::uint64_t step = 1; step < 6; ++step) out.says(step == 1 ? first : each, step, phase);
    return out;
}

standing at(std::uint32_t rank, std::uint64_t step, std::uint32_t phase = phase_of_saves,
            char process = 'S') {
    return {rank, step, phase, 12'345ms, true, process};
}

}  // namespace

TEST_CASE("late is who stands far longer than ever before", "[standing]") {
    CHECK_FALSE(page().after(1h));  // it has said nothing
    CHECK_FALSE(trained(1s, 1s).after(-1ms));
    CHECK(trained(100ms, 100ms).after(2s)->since == 2s);
    CHECK_FALSE(trained(100ms, 100ms).is_late(10s));
    CHECK(trained(100ms, 100ms).is_late(10'001ms));
    CHECK_FALSE(trained(100ms, 4s).is_late(20s));
    CHECK(trained(100ms, 4s).is_late(20'001ms));
    CHECK(trained(300s, 100ms).is_late(10'001ms));  // the first one compiled
    page young;
    for (std::uint64_t step = 0; step < 4; ++step) young.says(1ms, step, 0);
    CHECK_FALSE(young.is_late(24h));
}

TEST_CASE("each phase has its own usual time, and one that is new is late never", "[standing]") {
    auto p = trained(1ms, 1ms);
    for (std::uint64_t step = 6; step < 12; ++step) {
        p.says(1ms, step, 1);
        p.says(60s, step, 0);  // an evaluation of a minute
    }
    CHECK(p.is_late(11s));
    p.says(1ms, 12, 1);
    CHECK_FALSE(p.is_late(299s));
    CHECK(p.is_late(301s));
    p.says(1ms, 12, 2);
    CHECK_FALSE(p.is_late(24h));
}

TEST_CASE("whatever a page says, it is read", "[standing]") {
    page p;
    p.beat->at_ns = UINT64_MAX;
    CHECK_FALSE(p.after(1h));
    p.beat->at_ns = 1;
    p.beat->phase = UINT32_MAX - 1;
    for (auto& stay : p.beat->stays) {
        stay.longest_ns = UINT64_MAX;
        stay.count = UINT64_MAX;
    }
    CHECK_FALSE(p.is_late(1h));
    p.says(1h, UINT64_MAX, 0);
    CHECK(p.after(1s)->step == UINT64_MAX);
    forget_beats(*p.beat);
    CHECK_FALSE(p.after(1h));
}

TEST_CASE("the rank that is behind all others hangs", "[standing]") {
    CHECK(find_hang({at(0, 40, 2), at(1, 40, 2), at(2, 40, 1), at(3, 40, 2)}) ==
          hang{{2}, 40, "at step 40, phase 1, for 12 s; the others are at step 40, phase 2"});
    CHECK(find_hang({at(0, 7), at(1, 8)}) ==
          hang{{0}, 7, "at its save of step 7, for 12 s; the other is at its save of step 8"});
    // Two nodes, of which one hangs with both its ranks.
    CHECK(find_hang({at(0, 8), at(1, 8), at(2, 7), at(3, 7)})->ranks == std::vector<std::uint32_t>{2, 3});
    // Pipeline stages at various places: who is behind.
    CHECK(find_hang({at(0, 9, 1), at(1, 9, 2), at(2, 8, 9), at(3, 9, 3)})->ranks ==
          std::vector<std::uint32_t>{2});
}

TEST_CASE("a rank that was stopped hangs, wherever it stands", "[standing]") {
    CHECK(find_hang({at(0, 7), at(1, 7, phase_of_saves, 'T'), at(2, 7)}) ==
          hang{{1}, 7, "stopped by a signal, at its save of step 7, for 12 s"});
    CHECK_FALSE(find_hang({at(0, 7, 0, 'T'), at(1, 7, 0, 'T')}));                    // scontrol suspend
    CHECK_FALSE(find_hang({at(0, 7, 0, 't'), at(1, 8, 0, 'S'), at(2, 8, 0, 'S')}));  // gdb
}

TEST_CASE("nobody is named where nothing tells one from the others", "[standing]") {
    CHECK_FALSE(find_hang({}));
    CHECK_FALSE(find_hang({at(0, 7)}));
    CHECK_FALSE(find_hang({at(0, 7), at(1, 7), at(2, 7)}));
    // One that is ahead waits for the others, which storage stalls, say; or it has phases of its own.
    CHECK_FALSE(find_hang({at(0, 40, 4), at(1, 40, 2), at(2, 40, 2)}));
    // The one with heartbeats says them seldom.
    CHECK_FALSE(find_hang({at(0, 30, 0), at(1, 39), at(2, 39)}));
    auto works = at(2, 7, 4);
    works.late = false;
    CHECK_FALSE(find_hang({at(0, 7, 1), at(1, 7, 1), works}));
}

TEST_CASE("standings pass from node to node", "[standing]") {
    const std::vector<standing> some{at(0, UINT64_MAX, 0, 'T'), at(3, 0)};
    const auto back = standings_from(to_json(some), 4);
    REQUIRE(back);
    CHECK(to_json(*back) == to_json(some));
    CHECK_FALSE(standings_from(to_json(some), 3));
    CHECK_FALSE(standings_from(to_json(some), 0));
    CHECK_FALSE(standings_from({{"ranks", 1}}, 4));
    CHECK_FALSE(standings_from(nullptr, 4));
}

}  // namespace test_standing
