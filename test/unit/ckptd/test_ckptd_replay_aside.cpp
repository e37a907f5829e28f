// SPDX-License-Identifier: BSD-3-Clause
//
// A crash after each single operation of what banyan-ckpt does to a directory: a step that is dropped, others
// that are set aside or come back. Whatever survives, no step is lost or in two places, and the same said
// once more brings it to its end.
#include <algorithm>

#include <catch2/catch.hpp>

#include "common/file.hpp"
#include "crash_model.hpp"
#include "steps.hpp"

namespace test_ckptd_replay_aside {

using namespace banyan::ckpt;
using namespace ckptd_test;
namespace fs = std::filesystem;

namespace {

using numbers = std::vector<std::uint64_t>;
using survives = crash_model::survives;

constexpr std::uint64_t small = 1000;

void make_steps(const std::string& dir, const numbers& steps) {
    for (const auto step : steps) REQUIRE(write_step(own(dir), step, 9, small));
    REQUIRE(release_claim(self(), own(dir)));
}

/// The committed ones, newest first; each must be whole.
numbers whole_steps(const std::string& dir) {
    const auto steps = list_steps(self(), dir);
    if (!steps) FAIL(steps.error().text());
    for (const auto step : *steps) {
        const auto whole = verify_step(self(), dir, step, 2);
        if (!whole) FAIL_CHECK(whole.error().text());
    }
    return *steps;
}

std::string aside(const std::string& dir) { return dir + "/" + set_aside_folder; }

void all_are_there(const std::string& dir, numbers wanted) {
    auto all = whole_steps(dir);
    const auto others = whole_steps(aside(dir));
    all.insert(all.end(), others.begin(), others.end());
    std::sort(all.rbegin(), all.rend());
    CHECK(all == wanted);
}

std::string latest(const std::string& dir) {
    const auto text = banyan::read_file(dir + "/latest", 100);
    return text ? *text : "";
}

/// As banyan-ckpt restore does it.
void begin_from(const std::string& dir, std::uint64_t step) {
    REQUIRE(set_newer_aside(self(), dir, step));
    if (fs::exists(step_folder(aside(dir), step))) REQUIRE(take_back(self(), dir, step));
    REQUIRE(set_newer_aside(self(), dir, step));
}

}  // namespace

TEST_CASE("a crash after any operation of a drop: the step is there and whole, or it is gone", "[ckptd]") {
    const temporary t;
    make_steps(t.dir(), {10, 20, 30});
    const auto gone = GENERATE(20u, 30u);
    const numbers before{30, 20, 10};
    numbers after = before, at_last;
    std::erase(after, gone);
    const auto operations = crash_model::replay(
        t.dir(), [&] { REQUIRE(drop_step(self(), t.dir(), gone)); },
        [&](const std::string& crashed, survives how) {
            const auto now = whole_steps(crashed);
            CHECK((now == before || now == after));
            if (how == survives::synced) at_last = now;
            if (now == before) REQUIRE(drop_step(self(), crashed, gone));
            own(crashed, 12, 9);  // what a removal has left half-way goes with the next owner
            CHECK(whole_steps(crashed) == after);
            for (const auto& e : fs::directory_iterator(crashed))
                CHECK_FALSE(e.path().filename().string().starts_with(".trash"));
        });
    CHECK(operations > 8);
    CHECK(at_last == after);
    CHECK(latest(t.dir()) == step_name(after.front()) + "\n");
}

TEST_CASE("a step that was dropped does not come back by another name", "[ckptd]") {
    const temporary t;
    make_steps(t.dir(), {10, 20});
    // A crash at the end of a commit that replaced step 20, on a file system that cannot exchange two names.
    fs::copy(step_folder(t.dir(), 20), t.path / "older");
    REQUIRE(write_step(own(t.dir(), 12, 2), 20, 9, 2 * small));
    fs::rename(t.path / "older", t.dir() + "/.replaced.step-000000000020");
    numbers at_last;
    crash_model::replay(
        t.dir(), [&] { REQUIRE(drop_step(self(), t.dir(), 20)); },
        [&](const std::string& crashed, survives how) {
            const auto now = list_steps(self(), crashed);
            REQUIRE(now);
            CHECK((*now == numbers{20, 10} || *now == numbers{10}));
            if (*now == numbers{20, 10}) CHECK(verify_step(self(), crashed, 20, 2));
            if (how == survives::synced) at_last = *now;
        });
    CHECK(at_last == numbers{10});
}

TEST_CASE("a crash after any operation of a restore that sets newer steps aside", "[ckptd]") {
    const temporary t;
    const numbers all{40, 30, 20, 10};
    make_steps(t.dir(), {10, 20, 30, 40});
    const bool was_there = GENERATE(false, true);  // the folder, with another one in it
    if (was_there) begin_from(t.dir(), 30);
    std::uint64_t newest = 0;
    const auto operations = crash_model::replay(
        t.dir(), [&] { begin_from(t.dir(), 10); },
        [&](const std::string& crashed, survives how) {
            all_are_there(crashed, all);
            const auto now = whole_steps(crashed);
            REQUIRE_FALSE(now.empty());
            if (how == survives::synced) newest = now.front();
            begin_from(crashed, 10);
            CHECK(whole_steps(crashed) == numbers{10});
            CHECK(latest(crashed) == "step-000000000010\n");
            all_are_there(crashed, all);
        });
    CHECK(operations > 8);
    CHECK(newest == 10);
}

TEST_CASE("a crash after any operation of a restore of what was set aside", "[ckptd]") {
    const temporary t;
    const numbers all{40, 30, 20, 10};
    make_steps(t.dir(), {10, 20, 30, 40});
    begin_from(t.dir(), 10);
    // One newer than it is back, or none.
    const bool newer = GENERATE(false, true);
    if (newer) REQUIRE(take_back(self(), t.dir(), 40));
    numbers at_last;
    crash_model::replay(
        t.dir(), [&] { begin_from(t.dir(), 30); },
        [&](const std::string& crashed, survives how) {
            all_are_there(crashed, all);
            const auto now = whole_steps(crashed);
            CHECK_FALSE(now.empty());
            if (how == survives::synced) at_last = now;
            begin_from(crashed, 30);
            CHECK(whole_steps(crashed) == numbers{30, 10});
            CHECK(latest(crashed) == "step-000000000030\n");
            all_are_there(crashed, all);
        });
    CHECK(at_last == numbers{30, 10});
}

}  // namespace test_ckptd_replay_aside
