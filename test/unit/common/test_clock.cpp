// SPDX-License-Identifier: BSD-3-Clause
//
// Time that a test holds: timers, sleeps and the time of day go by it, in this process and in others.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "common/child.hpp"
#include "common/timer.hpp"
#include "test/held_clock.hpp"
#include "test/scratch_path.hpp"

namespace test_clock {

using namespace banyan;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

std::string clock_file() { return banyan::testing::scratch_path("clock"); }

}  // namespace

TEST_CASE("the kernel's time goes on by itself", "[clock]") {
    const auto before = clock::now();
    clock::sleep_for(2ms);
    CHECK(clock::now() - before >= 2ms);
    CHECK(clock::before_next_look(1h) == 1h);
    CHECK(clock::poll_ms(clock::now() + 2h) == 3'600'000);
    CHECK(clock::poll_ms(clock::now() - 1s) == 0);
}

TEST_CASE("held time moves when it is moved, and the time of day with it", "[clock]") {
    testing::held_clock held(clock_file());
    const auto before = clock::now();
    const auto wall = clock::wall_ms();
    std::this_thread::sleep_for(5ms);
    CHECK(clock::now() == before);
    held.advance(3h);
    CHECK(clock::now() == before + 3h);
    CHECK(clock::wall_ms() - wall == 3 * 3'600'000);
    CHECK(clock::before_next_look(1h) == 1ms);
    CHECK(clock::before_next_look(-1s) == -1s);
    CHECK(clock::poll_ms(clock::now() + 1h) == 1);
    CHECK(clock::poll_ms(clock::now()) == 0);
}

TEST_CASE("a timer ends when held time has passed it, and not before", "[clock]") {
    testing::held_clock held(clock_file());
    boost::asio::io_context io;
    int ended = 0;
    timer first(io, 10s), second(io, 20s);
    for (auto* t : {&first, &second}) t->async_wait([&](auto ec) { ended += ec ? 100 : 1; });
    io.run_for(20ms);
    CHECK(ended == 0);
    held.advance(10s);
    while (ended == 0) io.run_one();
    io.run_for(20ms);
    CHECK(ended == 1);
    held.advance(10s);
    io.run();
    CHECK(ended == 2);
}

TEST_CASE("a thread sleeps until held time has passed", "[clock]") {
    testing::held_clock held(clock_file());
    const auto until = clock::now() + 1h;
    std::thread sleeper([until] { clock::sleep_until(until); });
    held.advance(1h);
    sleeper.join();
    CHECK(clock::now() >= until);
}

TEST_CASE("another process follows the file that BANYAN_CLOCK names", "[clock]") {
    testing::held_clock held(clock_file());
    held.advance(24h);
    const auto told = clock::now();
    ::setenv("BANYAN_CLOCK", held.path().c_str(), 1);
    const auto end = run_forked([told] {
        clock::follow(nullptr);
        return clock::follow_environment() && clock::now() == told ? 0 : 1;
    });
    ::unsetenv("BANYAN_CLOCK");
    REQUIRE(end);
    CHECK(end->code == 0);
}

TEST_CASE("BANYAN_CLOCK that cannot be followed is refused with the reason", "[clock]") {
    CHECK(clock::follow_environment());  // unset: nothing to do
    const auto refused = [](const std::string& path) {
        ::setenv("BANYAN_CLOCK", path.c_str(), 1);
        const auto done = clock::follow_environment();
        ::unsetenv("BANYAN_CLOCK");
        return done ? std::optional<errc>() : done.error().code;
    };
    CHECK(refused("/nonexistent/clock") == errc::not_found);
    const auto path = clock_file();
    std::ofstream(path) << "short";
    CHECK(refused(path) == errc::invalid_input);
    fs::remove(path);
}

}  // namespace test_clock
