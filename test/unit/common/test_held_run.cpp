// SPDX-License-Identifier: BSD-3-Clause
//
// Held time that passes by itself, as long as nobody has anything to do.
#include <optional>
#include <thread>

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "common/timer.hpp"
#include "common/wire_async.hpp"
#include "test/held_run.hpp"

using namespace banyan;
using namespace std::chrono_literals;
using banyan::testing::gate;
using banyan::testing::held_run;

namespace {

/// When what `f` blocks for has come back, of the time that has passed by then.
template <class F>
void ask(asio::io_context& io, asio::thread_pool& pool, std::optional<clock::duration>& after, F f) {
    const auto call = [](asio::thread_pool& on, std::optional<clock::duration>& out, F what) -> task<void> {
        const auto begun = clock::now();
        co_await run_blocking(on, std::move(what));
        out = clock::now() - begun;
    };
    asio::co_spawn(io, call(pool, after, std::move(f)), asio::detached);
}

}  // namespace

TEST_CASE("what is to happen within a time has happened, and nothing later", "[clock]") {
    held_run time;
    asio::io_context io;
    int ended = 0;
    banyan::timer first(io, 1min), second(io, 1min + 1ms);
    for (auto* t : {&first, &second}) t->async_wait([&](auto) { ++ended; });
    time.pass(io, 1min - 1ms);
    CHECK(ended == 0);
    time.pass(io, 1ms);
    CHECK(ended == 1);
    CHECK(time.until(io, [&] { return ended == 2; }));
    CHECK_FALSE(time.until(io, [] { return false; }));
}

TEST_CASE("no time passes while another thread works, however long that takes", "[clock]") {
    held_run time;
    asio::io_context io;
    asio::thread_pool pool(1);
    std::optional<clock::duration> after;
    ask(io, pool, after, [] {
        std::this_thread::sleep_for(20ms);
        return true;
    });
    CHECK(time.until(io, [&] { return after.has_value(); }));
    CHECK(after == 0s);
}

TEST_CASE("time passes while a gate holds a call", "[clock]") {
    held_run time;
    asio::io_context io;
    asio::thread_pool pool(1);
    gate shut;
    std::optional<clock::duration> after;
    ask(io, pool, after, [&] {
        shut();
        return true;
    });
    CHECK(time.until(io, [&] { return shut.reached(); }));
    time.pass(io, 1min);
    CHECK_FALSE(after);
    shut.open();
    CHECK(time.until(io, [&] { return after.has_value(); }));
    CHECK(after == 1min);
}
