// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "supervisor/recovery.hpp"

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
    r.begin(start + 60s, "step 3.0");
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
    r.begin(start + 10s, "step 3.0");
    r.has_begun(start + 11s);
    r.begin(start + 20s, "step 3.1");
    CHECK(r.stood(start + 21s) == 1s);
    r.has_begun(start + 22s);
    CHECK(r.look(start + 25s, 6, "step 3.2") ==
          "step 3.2 trains again: training step 6 is complete 15.0 s after step 3.0 ended, 12.0 s of them "
          "until "
          "Slurm gave the step");
}

TEST_CASE("a restart is overdue by what the first step took, where that is known", "[supervisor]") {
    SECTION("not known") {
        recovery r(start, std::nullopt);
        r.begin(start, "step 3.0");
        r.has_begun(start);
        CHECK_FALSE(r.is_overdue(start + 100h));
    }
    SECTION("two minutes at least") {
        recovery r(start, std::nullopt);
        r.has_begun(start);
        r.look(start + 1s, 1, {});
        CHECK_FALSE(r.is_overdue(start + 1h));  // it trains
        r.begin(start + 1h, "step 3.0");
        CHECK_FALSE(r.is_overdue(start + 2h));  // it waits for Slurm
        r.has_begun(start + 2h);
        CHECK_FALSE(r.is_overdue(start + 2h + 120s));
        CHECK(r.is_overdue(start + 2h + 121s));
    }
    SECTION("three times as long") {
        recovery r(start, std::nullopt);
        r.has_begun(start);
        r.look(start + 600s, 1, {});
        r.begin(start + 1h, "step 3.0");
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
