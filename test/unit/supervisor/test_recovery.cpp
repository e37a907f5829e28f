// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "supervisor/recovery.hpp"

namespace test_recovery {

using namespace banyan::supervisor;
using namespace std::chrono_literals;

namespace {
const auto start = recovery::clock::time_point{} + 1h;
}

TEST_CASE("the first step is no recovery, and says nothing when it trains", "[supervisor]") {
    recovery r(start, 7);
    CHECK_FALSE(r.runs());
    r.has_begun(start + 1s);
    CHECK_FALSE(r.look(start + 2s, 7, "step 3.0"));
    CHECK_FALSE(r.trains());
    CHECK_FALSE(r.look(start + 3s, 8, "step 3.0"));
    CHECK(r.trains());
}

TEST_CASE("a restart is followed until a newer training step is complete", "[supervisor]") {
    recovery r(start, std::nullopt);
    r.has_begun(start);
    r.look(start + 10s, 4, "step 3.0");
    r.begin(start + 60s, "step 3.0", std::nullopt);
    CHECK(r.runs());
    CHECK(r.stood(start + 61s) == 1s);
    CHECK_FALSE(r.look(start + 61s, 4, "step 3.1"));  // what there was before
    r.has_begun(start + 62s);
    CHECK_FALSE(r.look(start + 63s, std::nullopt, "step 3.1"));  // the daemon did not answer
    CHECK(r.runs());
    CHECK(
        r.look(start + 64s, 5, "step 3.1") ==
        "step 3.1 trains again: training step 5 is complete 4.0 s after step 3.0 ended, 2.0 s of them until "
        "Slurm gave the step");
    CHECK_FALSE(r.runs());
}

TEST_CASE("a restart that did not come to train is part of the same recovery", "[supervisor]") {
    recovery r(start, 4);
    r.begin(start + 10s, "step 3.0", std::nullopt);
    r.has_begun(start + 11s);
    r.begin(start + 20s, "step 3.1", std::nullopt);
    CHECK(r.stood(start + 21s) == 1s);
    r.has_begun(start + 22s);
    CHECK(r.look(start + 25s, 6, "step 3.2") ==
          "step 3.2 trains again: training step 6 is complete 15.0 s after step 3.0 ended, 12.0 s of them "
          "until "
          "Slurm gave the step");
}

TEST_CASE("a restart trains from an older step when the newer ones were lost with their nodes",
          "[supervisor]") {
    recovery r(start, std::nullopt);
    r.has_begun(start);
    r.look(start + 10s, 1, "step 3.0");
    r.begin(start + 60s, "step 3.0", 1000);
    r.look(start + 61s, 1000, {});  // srun has no step yet
    r.has_begun(start + 62s);
    CHECK_FALSE(r.look(start + 63s, 1000, "step 3.1"));  // nor has the daemon heard of it
    CHECK_FALSE(r.look(start + 64s, 500, "step 3.1"));
    CHECK_FALSE(r.look(start + 65s, 500, "step 3.1"));
    CHECK(r.runs());
    CHECK(r.look(start + 66s, 501, "step 3.1") ==
          "step 3.1 trains again: training step 501 is complete 6.0 s after step 3.0 ended, 2.0 s of them "
          "until Slurm gave the step");
    CHECK_FALSE(r.is_overdue(start + 100h));
}

TEST_CASE("what a restart must get beyond is less once, when it begins from an older step", "[supervisor]") {
    recovery r(start, 7);
    CHECK(r.to_beat() == 7u);
    r.has_begun(start);
    r.look(start, 8, {});
    CHECK(r.to_beat() == 7u);
    const auto from_to = [&](std::uint64_t from, std::uint64_t to) {
        r.has_begun(start);
        r.look(start, from, {});
        r.look(start, from + 1, {});
        const auto had = r.to_beat();
        r.begin(start, "step 3.0", to);
        return had;
    };
    r.begin(start, "step 3.0", 1000);
    CHECK(from_to(500, 700) == 500u);  // no idle one
    CHECK(from_to(700, 800) == 700u);
    SECTION("it fails on the same way again and again") {
        CHECK(from_to(500, 800) == 800u);
        CHECK(from_to(500, 800) == 800u);
        CHECK(from_to(500, 801) == 800u);
        CHECK(from_to(500, 801) == 801u);
    }
    SECTION("it gets beyond where it has ever been, and falls back again") {
        CHECK(from_to(800, 1001) == 800u);
        CHECK(from_to(900, 1000) == 900u);
        CHECK(from_to(900, 1000) == 1000u);
    }
    SECTION("what it fell back to is damaged, too") {
        CHECK(from_to(400, 450) == 400u);
        CHECK(from_to(400, 450) == 450u);
    }
    SECTION("the daemon does not answer at the end") {
        r.begin(start, "step 3.0", std::nullopt);
        CHECK(r.to_beat() == 800u);
    }
    SECTION("nobody saw it begin") {
        r.has_begun(start);
        r.begin(start, "step 3.0", 600);
        CHECK(r.to_beat() == 800u);
    }
}

TEST_CASE("a restart is overdue by what the first step took, where that is known", "[supervisor]") {
    SECTION("not known") {
        recovery r(start, std::nullopt);
        r.begin(start, "step 3.0", std::nullopt);
        r.has_begun(start);
        CHECK_FALSE(r.is_overdue(start + 100h));
    }
    SECTION("two minutes at least") {
        recovery r(start, std::nullopt);
        r.has_begun(start);
        r.look(start + 1s, 1, {});
        CHECK_FALSE(r.is_overdue(start + 1h));  // it trains
        r.begin(start + 1h, "step 3.0", std::nullopt);
        CHECK_FALSE(r.is_overdue(start + 2h));  // it waits for Slurm
        r.has_begun(start + 2h);
        CHECK_FALSE(r.is_overdue(start + 2h + 120s));
        CHECK(r.is_overdue(start + 2h + 121s));
    }
    SECTION("three times as long") {
        recovery r(start, std::nullopt);
        r.has_begun(start);
        r.look(start + 600s, 1, {});
        r.begin(start + 1h, "step 3.0", std::nullopt);
        r.has_begun(start + 1h);
        CHECK_FALSE(r.is_overdue(start + 1h + 1800s));
        CHECK(r.is_overdue(start + 1h + 1801s));
    }
}

TEST_CASE("what brought no training further is kept for the end, the latest of it", "[supervisor]") {
    recovery r(start, std::nullopt);
    CHECK(r.idle_ends().empty());
    r.note_idle("one");
    r.note_idle("two");
    CHECK(r.idle_ends() == "one; two");
    for (int n = 0; n < 1000; ++n) r.note_idle("more");
    CHECK(r.idle_ends() == "more; more; more; more; more; more; more; more");
    r.forget_idle();
    CHECK(r.idle_ends().empty());
}

}  // namespace test_recovery
