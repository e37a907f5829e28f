// SPDX-License-Identifier: BSD-3-Clause
//
// A crash after each single operation of a commit: whatever part of what was not synced survives, a reader
// finds the old complete step or the new one, and so does the next owner, after it has cleaned up.
#include <catch2/catch.hpp>

#include "crash_model.hpp"
#include "steps.hpp"

namespace test_ckptd_replay {

using namespace banyan::ckpt;
using namespace ckptd_test;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t small = 1000;

struct found {
    std::uint64_t step = 0, generation = 0;
    auto operator<=>(const found&) const = default;
};

/// The newest step. One that looks committed and is not whole fails the test, also an older one.
found look(const std::string& dir) {
    found newest;
    const auto steps = list_steps(self(), dir);
    if (!steps) FAIL(steps.error().text());
    for (const auto step : *steps) {
        const auto whole = verify_step(self(), dir, step, 2);
        if (!whole) FAIL_CHECK(whole.error().text());
        if (whole && newest.step == 0) newest = {step, whole->generation};
    }
    return newest;
}

struct replay {
    std::string dir;
    found before, after;
    std::size_t operations = 0;

    void run(const std::function<void()>& act) {
        found last_synced;
        operations =
            crash_model::replay(dir, act, [&](const std::string& crashed, crash_model::survives way) {
                const auto now = look(crashed);
                CHECK((now == before || now == after));
                if (way == crash_model::survives::synced) last_synced = now;
                own(crashed, 12, 9);
                CHECK(look(crashed) == now);
            });
        // What the caller was told is there for good.
        CHECK(last_synced == after);
        CHECK(look(dir) == after);
    }
};

}  // namespace

TEST_CASE("a crash after any operation of a commit leaves the old step or the new one", "[ckptd]") {
    const temporary t;
    const auto c = own(t.dir(), 12, 1);
    REQUIRE(write_step(c, 10, 2, small));
    SECTION("a first one of its number, the old one stays") {
        replay r{t.dir(), {10, 1}, {20, 1}};
        r.run([&] { REQUIRE(write_step(c, 20, 2, small)); });
        CHECK(r.operations > 30);
    }
    SECTION("the old one goes") {
        replay r{t.dir(), {10, 1}, {20, 1}};
        r.run([&] { REQUIRE(write_step(c, 20, 1, small)); });
        CHECK(fs::exists(t.dir() + "/step-000000000020"));
        CHECK_FALSE(fs::exists(t.dir() + "/step-000000000010"));
    }
}

TEST_CASE("a crash after any operation of a commit that replaces a step of its number", "[ckptd]") {
    const temporary t;
    REQUIRE(write_step(own(t.dir(), 12, 1), 10, 2, small));
    const bool without_exchange = GENERATE(false, true);
    crash_model::refuse_exchange(without_exchange);
    const auto c = own(t.dir(), 12, 2);
    replay r{t.dir(), {10, 1}, {10, 2}};
    r.run([&] { REQUIRE(write_step(c, 10, 2, 2 * small)); });
    crash_model::refuse_exchange(false);
    std::size_t left = 0;
    for ([[maybe_unused]] const auto& e : fs::directory_iterator(t.dir())) ++left;
    CHECK(left == 3);
}

TEST_CASE("a crash after any operation of a take-over", "[ckptd]") {
    const temporary t;
    const auto old = own(t.dir(), 12, 1);
    REQUIRE(write_step(old, 10, 2, small));
    const auto flush = open_flush(self(), old);
    ckptd_test::write_files(old, *flush, 20, small);
    fs::create_directory(t.dir() + "/step-000000000030");
    SECTION("of a directory in order") {}
    SECTION("of one in which a replacement had stopped") {
        fs::rename(t.dir() + "/step-000000000010", t.dir() + "/.replaced.step-000000000010");
    }
    replay r{t.dir(), {10, 1}, {10, 1}};
    r.run([&] { own(t.dir(), 12, 2); });
    CHECK_FALSE(fs::exists(t.dir() + "/" + *flush));
}

}  // namespace test_ckptd_replay
