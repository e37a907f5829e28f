// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "supervisor/departure.hpp"

namespace test_departure {

using namespace banyan::supervisor;
using namespace std::chrono_literals;
using names = std::vector<std::string>;

namespace {

const auto begin = departure::clock::time_point{} + 1h;
const names all{"n01", "n02", "n03"}, without_n02{"n01", "n03"};

/// How often slurmctld is asked in the first `time` when no node leaves.
int looks_within(departure& d, std::chrono::seconds time) {
    int out = 0;
    for (auto now = begin; now < begin + time; now += 100ms)
        if (d.is_due(now)) {
            ++out;
            CHECK(d.look(now, all, 7).empty());
        }
    return out;
}

}  // namespace

TEST_CASE("no node of the step leaves, and others come and go", "[supervisor]") {
    departure d(begin, {"n01", "n03"});
    CHECK_FALSE(d.is_due(begin + 1s));
    CHECK(d.is_due(begin + 2s));
    CHECK(d.look(begin + 2s, all, 1).empty());
    CHECK(d.look(begin + 10s, names{"n01", "n03"}, 2).empty());
    CHECK(d.look(begin + 20s, names{"n01", "n03", "n04"}, 3).empty());
}

TEST_CASE("a node that left once may be that of a step that dies", "[supervisor]") {
    departure d(begin, all);
    CHECK(d.look(begin + 2s, without_n02, 1).empty());
    CHECK_FALSE(d.is_due(begin + 6s));
    CHECK(d.look(begin + 6s, without_n02, 2).empty());  // asked for another reason
    CHECK(d.is_due(begin + 7s));
    CHECK(d.look(begin + 7s, without_n02, 2).empty());
}

TEST_CASE("the step trains on without a node", "[supervisor]") {
    departure d(begin, all);
    CHECK(d.look(begin + 2s, without_n02, 1).empty());
    CHECK(d.look(begin + 7s, without_n02, 2).empty());
    CHECK(d.is_due(begin + 9s));
    CHECK(d.look(begin + 9s, without_n02, 3) == names{"n02"});
    SECTION("one left and one joined") {
        departure other(begin, all);
        const names now{"n01", "n03", "n04"};
        CHECK(other.look(begin + 2s, now, 1).empty());
        CHECK(other.look(begin + 7s, now, 1).empty());
        CHECK(other.look(begin + 9s, now, 2) == names{"n02"});
    }
}

TEST_CASE("a step that has its signal and does not end trains no more", "[supervisor]") {
    departure d(begin, all);
    CHECK(d.look(begin + 2s, without_n02, 1).empty());
    for (auto now = begin + 7s; now < begin + 1h; now += 30s) CHECK(d.look(now, without_n02, 2).empty());
    SECTION("or it is not known whether it does") {
        departure other(begin, all);
        for (auto now = begin + 2s; now < begin + 1h; now += 30s)
            CHECK(other.look(now, without_n02, std::nullopt).empty());
        CHECK(other.look(begin + 1h, without_n02, 5).empty());
        CHECK(other.look(begin + 2h, without_n02, 6) == names{"n02"});
    }
}

TEST_CASE("a node that left is back", "[supervisor]") {
    departure d(begin, all);
    CHECK(d.look(begin + 2s, without_n02, 1).empty());
    CHECK(d.look(begin + 7s, without_n02, 1).empty());
    CHECK(d.look(begin + 9s, all, 2).empty());
    CHECK(d.look(begin + 11s, without_n02, 3).empty());
    CHECK(d.look(begin + 16s, without_n02, 4).empty());
    CHECK(d.look(begin + 18s, without_n02, 5) == names{"n02"});
    SECTION("and another left") {
        departure other(begin, all);
        const names without_n03{"n01", "n02"};
        CHECK(other.look(begin + 2s, without_n02, 1).empty());
        CHECK(other.look(begin + 7s, without_n03, 2).empty());
        CHECK(other.look(begin + 12s, without_n03, 3).empty());
        CHECK(other.look(begin + 14s, without_n03, 4) == names{"n03"});
    }
}

TEST_CASE("slurmctld does not answer", "[supervisor]") {
    departure d(begin, all);
    SECTION("at all") {
        for (auto now = begin + 2s; now < begin + 1h; now += 30s) {
            CHECK(d.is_due(now));
            CHECK(d.look(now, std::nullopt, 1).empty());
        }
        CHECK_FALSE(d.is_over());  // it has not been looked at
        CHECK(d.look(begin + 1h, all, 1).empty());
        CHECK(d.is_over());
    }
    SECTION("between two looks") {
        CHECK(d.look(begin + 2s, without_n02, 1).empty());
        CHECK(d.look(begin + 7s, std::nullopt, 2).empty());
        CHECK_FALSE(d.is_due(begin + 36s));  // each such question may take its time
        CHECK(d.look(begin + 37s, without_n02, 3).empty());
        CHECK(d.look(begin + 47s, without_n02, 4) == names{"n02"});
    }
    SECTION("with the nodes") {
        for (auto now = begin + 2s; now < begin + 1h; now += 30s) CHECK(d.look(now, names{}, 1).empty());
    }
}

TEST_CASE("how often slurmctld is asked, and for how long", "[supervisor]") {
    departure d(begin, all);
    SECTION("a step that trains soon") {
        d.trains(begin + 5s);
        d.trains(begin + 50s);  // as it did before
        CHECK(looks_within(d, 1h) <= 20);
        CHECK(d.is_over());
    }
    SECTION("one that takes its time") {
        CHECK(looks_within(d, 590s) <= 40);
        CHECK_FALSE(d.is_over());
        CHECK(looks_within(d, 1h) <= 2);
        CHECK(d.is_over());
    }
    SECTION("a loss in the last of them is followed") {
        d.trains(begin + 5s);
        CHECK(d.look(begin + 65s, without_n02, 1).empty());
        CHECK(d.look(begin + 70s, without_n02, 2).empty());
        CHECK_FALSE(d.is_over());
        CHECK(d.look(begin + 90s, without_n02, 3) == names{"n02"});
    }
    SECTION("no step") {
        departure none;
        CHECK(none.is_over());
        CHECK_FALSE(none.is_due(begin));
        CHECK(none.look(begin, without_n02, 1).empty());
    }
}

}  // namespace test_departure
