// SPDX-License-Identifier: BSD-3-Clause
//
// The agreement in simulated clusters (test/simulator).
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "common/text.hpp"
#include "test/simulator/world.hpp"

namespace test_schedules {

using namespace banyan::ckpt;

namespace {

simulator::settings some_settings(std::uint64_t seed) {
    simulator::settings s;
    s.slots = static_cast<std::uint32_t>(1 + seed % 6);
    s.spares = static_cast<std::uint32_t>(1 + seed / 5 % (s.slots + 1));
    s.moves = true;
    s.claims = seed % 3 != 0;
    s.plans = seed / 3 % 2 == 0;
    s.faults = static_cast<int>(1 + seed / 6 % 8);
    s.waits = seed % 4 == 0 ? 0 : 20;
    return s;
}

struct sums {
    std::uint64_t commits = 0, releases = 0, relaunches = 0, restored_older = 0, departures = 0;
    std::uint64_t forgot_late = 0, awaited = 0;
    std::uint64_t fewer = 0, more = 0, from_others = 0;
    std::vector<std::string> breaches;
    std::string again;  ///< how these are run once more
};

/// Former nodes are given up before they answer.
simulator::settings impatient(std::uint64_t seed) {
    auto s = some_settings(seed);
    s.patience_us = 20'000;
    return s;
}

/// Data parallel groups of one to three ranks, of which a launch may have fewer than the job.
simulator::settings with_groups(std::uint64_t seed) {
    auto s = some_settings(seed);
    s.group = static_cast<std::uint32_t>(1 + seed % 3);
    const auto most = 6 / s.group;
    const auto groups = static_cast<std::uint32_t>(2 + seed / 3 % (most - 1));
    s.slots = s.group * groups;
    s.min_groups = static_cast<std::uint32_t>(1 + seed / 15 % groups);
    s.spares = static_cast<std::uint32_t>(seed / 7 % 3);
    s.claims = seed / 2 % 3 != 0;
    return s;
}

simulator::settings impatient_with_groups(std::uint64_t seed) {
    auto s = with_groups(seed);
    s.patience_us = impatient(seed).patience_us;
    return s;
}

sums simulate(std::uint64_t first, std::uint64_t count,
              simulator::settings (*settings)(std::uint64_t) = some_settings) {
    sums out;
    for (auto seed = first; seed < first + count && out.breaches.size() < 10; ++seed) {
        const auto o = simulator::run(seed, settings(seed));
        out.commits += o.commits;
        out.releases += o.releases;
        out.relaunches += o.relaunches;
        out.restored_older += o.restored_older;
        out.departures += o.departures;
        out.forgot_late += o.forgot_late;
        out.awaited += o.awaited;
        out.fewer += o.fewer;
        out.more += o.more;
        out.from_others += o.from_others;
        if (!o.breach.empty()) out.breaches.push_back("seed " + std::to_string(seed) + ": " + o.breach);
    }
    return out;
}

/// Which schedules these are: a number, as of the commit's hash.
std::uint64_t seed_of_all() {
    const char* text = std::getenv("BANYAN_SEED");
    if (!text) return 1;
    const auto seed = banyan::parse_number(text, UINT64_MAX);
    if (!seed) throw std::runtime_error("BANYAN_SEED is no number");
    return *seed;
}

/// Of each BANYAN_SEED others.
sums simulate_seeded(std::uint64_t count, simulator::settings (*settings)(std::uint64_t) = some_settings) {
    auto out = simulate(seed_of_all() * 10'000, count, settings);
    out.again = "once more: BANYAN_SEED=" + std::to_string(seed_of_all()) + " " +
                std::filesystem::read_symlink("/proc/self/exe").string() + " '[seeded]'";
    return out;
}

void check(const sums& s) {
    INFO(s.again);
    for (const auto& breach : s.breaches) UNSCOPED_INFO(breach);
    CHECK(s.breaches.empty());
    // Otherwise nothing was put to the test.
    CHECK(s.commits > 0);
    CHECK(s.releases > 0);
    CHECK(s.relaunches > 0);
    CHECK(s.restored_older > 0);
    CHECK(s.departures > 0);
    CHECK(s.forgot_late == 0);
}

/// Some are awaited all the same: somebody knows what is not whole without them.
void check_impatient(const sums& s) {
    check(s);
    INFO(s.again);
    CHECK(s.awaited > 0);
}

void check_groups(const sums& s) {
    check(s);
    INFO(s.again);
    CHECK(s.fewer > 0);
    CHECK(s.more > 0);
    CHECK(s.from_others > 0);
}

}  // namespace

// 10,000 schedules, which are others with each BANYAN_SEED.
TEST_CASE("schedules of faults: nothing acknowledged is lost, all ranks begin alike", "[ckptd][seeded]") {
    check(simulate_seeded(5'000));
}

TEST_CASE("schedules in which former nodes are silent, and go on with their launch", "[ckptd][seeded]") {
    check_impatient(simulate_seeded(2'000, impatient));
}

TEST_CASE("schedules of jobs with data parallel groups, fewer of them and more again", "[ckptd][seeded]") {
    check_groups(simulate_seeded(2'000, with_groups));
}

TEST_CASE("schedules of jobs with groups whose former nodes are silent", "[ckptd][seeded]") {
    check_groups(simulate_seeded(1'000, impatient_with_groups));
}

// The same ones each time.
TEST_CASE("100,000 schedules of faults", "[.fixed]") { check(simulate(1, 100'000)); }

TEST_CASE("20,000 schedules in which former nodes are silent", "[.fixed]") {
    check_impatient(simulate(1, 20'000, impatient));
}

TEST_CASE("20,000 schedules of jobs with data parallel groups", "[.fixed]") {
    check_groups(simulate(1, 20'000, with_groups));
}

TEST_CASE("5,000 schedules of jobs with groups whose former nodes are silent", "[.fixed]") {
    check_groups(simulate(1, 5'000, impatient_with_groups));
}

// In two processes, at once where there are two processors.
TEST_CASE("a million schedules of faults, the first half", "[.million-1]") {
    check(simulate(1'000'000, 500'000));
}
TEST_CASE("a million schedules of faults, the second half", "[.million-2]") {
    check(simulate(1'500'000, 500'000));
}

TEST_CASE("schedules that broke an earlier form of the rules", "[ckptd]") {
    struct found {
        std::uint64_t seed;
        std::uint32_t slots;
        int faults;
    };
    const auto [seed, slots, faults] = GENERATE(
        found{8, 3, 4},    // a daemon that has forgotten lets its ranks begin in a round that others train in
        found{234, 3, 4},  // the same, in a round of which it has not heard
        found{107, 3, 4},  // ranks hold different steps that none of them can complete
        found{478, 3, 4},  // a step that is replicated late was let go of by then
        found{178, 3, 4},  // copies for others that their owners have given up fill the room
        found{100032, 2, 6},  // what all began from counts as replicated, too
        found{100815, 4, 6},  // what all began from is overtaken before its second copies are made
        found{500595, 4, 5},  // whoever knew that it is replicated has died
        found{100987, 6, 6},  // a word about a step that is passed over was lost
        found{9263, 6, 8},    // a shard that was brought for one round answered another round's attempt
        found{80398, 5, 8},   // the same
        found{22930, 5, 6},   // a daemon that forgets what it has answered takes part in the same attempt
        found{37295, 6, 8},   // the same
        found{9579, 4, 5});   // the same, and the word that it has forgotten was lost
    simulator::settings s;
    s.slots = slots;
    s.faults = faults;
    CHECK(simulator::run(seed, s).breach == "");
}

TEST_CASE("schedules of launches that move, which broke an earlier form of the rules", "[ckptd]") {
    const std::uint64_t seed = GENERATE(  //
        4163, 10045,    // a question that was not asked in one attempt was not asked in the next
        466, 12646,     // nor in the launch's second round
        29983,          // a step that one holder had damaged was not tried with another's
        1505227,        // a member had lost its part of the newest step, so that nobody asked for the rest
        1602183,        // a daemon voted for a rank that had been on its node a launch ago
        1691708,        // one that had told a later launch what it holds let go of it for a commit of its own
        133, 421,       // what only such a one knew to be replicated was let go of by the members
        1233868,        // who had not heard how far the beginning came was told so by nobody
        14054, 15997,   // the books: what a daemon of an ended launch finds committed is overtaken there
        1487, 1035823,  // the same, and what its round begins from
        2050695,        // the books: nobody is left who knows where the job was
        1166152,        // a former node of which nothing was needed committed a step late
        1004531, 1209118, 1821670,
        1867243);  // what one of those knew was forgotten, since another one was silent
    CHECK(simulator::run(seed, some_settings(seed)).breach == "");
}

TEST_CASE("schedules in which former nodes are silent, which the books misjudged", "[ckptd]") {
    // What all had accepted while one was silent stands, though the coordinator's next life hears that one.
    const std::uint64_t seed = GENERATE(2075168, 2132816);
    CHECK(simulator::run(seed, impatient(seed)).breach == "");
}

TEST_CASE("schedules of jobs with groups, which broke an earlier form of the rules", "[ckptd]") {
    const std::uint64_t seed = GENERATE(  //
        5850, 7860,  // one node was left: for what it had alone the others let go of what was replicated
        25650,       // the books: who knew of a replicated step was known to nobody any more
        11120,       // what a launch began from had come to less in it, and nobody was told again
        37666);      // the simulator: for an attempt that was over the chosen step lost its buffer
    CHECK(simulator::run(seed, with_groups(seed)).breach == "");
    CHECK(simulator::run(3108, impatient_with_groups(3108)).breach == "");
}

}  // namespace test_schedules
