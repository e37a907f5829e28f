// SPDX-License-Identifier: BSD-3-Clause
//
// One user's work that never ends holds up nobody else's; connections are shared out; a process is known
// dead.
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <sys/socket.h>
#include <sys/wait.h>

#include "ckptd/daemon/fair_pool.hpp"
#include "ckptd/daemon/local_limits.hpp"
#include "ckptd/daemon/process.hpp"
#include "test/idle_clock.hpp"

namespace test_fair_pool {

using namespace banyan::ckpt;
namespace asio = boost::asio;

namespace {

// Storage that answers when the test says so.
struct gate {
    std::mutex lock;
    std::condition_variable changed;
    bool open = false;
    void wait() {
        std::unique_lock held(lock);
        changed.wait(held, [&] { return open; });
    }
    void release() {
        const std::scoped_lock held(lock);
        open = true;
        changed.notify_all();
    }
};

struct harness {
    asio::io_context io{1};
    fair_pool pool;
    std::shared_ptr<gate> stuck = std::make_shared<gate>();
    int done = 0, refused = 0;

    explicit harness(fair_pool::limits l) : pool("storage", l) {}
    template <class F>
    void submit(uid_t uid, F f) {
        asio::co_spawn(
            io,
            [](harness* self, uid_t who, F work) -> banyan::task<void> {
                const auto answer = co_await self->pool.run(who, work);
                if (answer)
                    ++self->done;
                else
                    ++self->refused;
            }(this, uid, std::move(f)),
            asio::detached);
    }
    void submit_stuck(uid_t uid) {
        submit(uid, [g = stuck]() -> banyan::result<int> {
            g->wait();
            return 1;
        });
    }
    bool until(const std::function<bool()>& holds) {
        return banyan::testing::eventually([&] {
            io.restart();
            io.poll();
            return holds();
        });
    }
};

}  // namespace

TEST_CASE("a user whose storage is stuck keeps his own threads and no others", "[ckptd]") {
    harness h({2, 64, 4});
    for (int i = 0; i < 6; ++i) h.submit_stuck(1);
    h.submit_stuck(1);  // beyond what may wait
    REQUIRE(h.until([&] { return h.refused == 1; }));
    CHECK(h.pool.load(1) == 6);
    for (int i = 0; i < 20; ++i) h.submit(2, []() -> banyan::result<int> { return 2; });
    h.until([&] { return h.done + h.refused >= 21; });
    // Four of them may wait while two run: the others were told at once.
    CHECK(h.done >= 6);
    const int others = h.done;
    CHECK(h.pool.load(1) == 6);
    h.stuck->release();
    CHECK(h.until([&] { return h.done == others + 6; }));
    CHECK(h.until([&] { return h.pool.load(1) == 0 && h.pool.load(2) == 0; }));
}

TEST_CASE("when all threads are stuck a newcomer is told, and comes in later", "[ckptd]") {
    harness h({1, 2, 4});
    h.submit_stuck(1);
    h.submit_stuck(2);
    h.submit(3, []() -> banyan::result<int> { return 3; });
    REQUIRE(h.until([&] { return h.refused == 1; }));
    h.stuck->release();
    REQUIRE(h.until([&] { return h.done == 2 && h.pool.load(1) + h.pool.load(2) == 0; }));
    h.submit(3, []() -> banyan::result<int> { return 3; });
    CHECK(h.until([&] { return h.done == 3; }));
}

TEST_CASE("work that throws is an error of that work", "[ckptd]") {
    harness h({1, 2, 4});
    h.submit(1, []() -> banyan::result<int> { throw std::bad_alloc(); });
    CHECK(h.until([&] { return h.refused == 1; }));
    h.submit(1, []() -> banyan::result<int> { return 1; });
    CHECK(h.until([&] { return h.done == 1; }));
}

TEST_CASE("connections: half of them for one user, and who has most makes room", "[ckptd]") {
    using verdict = local_limits::verdict;
    local_limits limits(8);
    for (int i = 0; i < 4; ++i) CHECK(limits.enter(1, true) == verdict::come);
    CHECK(limits.enter(1, true) == verdict::refuse);
    for (int i = 0; i < 4; ++i) CHECK(limits.enter(2, true) == verdict::come);
    CHECK(limits.enter(0, false) == verdict::come);
    CHECK(limits.enter(3, true) == verdict::make_room);
    CHECK((limits.gives_way() == 1 || limits.gives_way() == 2));
    limits.leave(1);
    CHECK(limits.enter(3, true) == verdict::make_room);
    limits.leave(2);
    for (int i = 0; i < 3; ++i) limits.leave(1);
    CHECK(limits.enter(4, true) == verdict::come);
    CHECK(local_limits::total_for(1'048'576) == 8192);
    CHECK(local_limits::total_for(1024) == 256);
}

TEST_CASE("connections: ever new uids without a session leave room for those with one", "[ckptd]") {
    using verdict = local_limits::verdict;
    local_limits limits(64);
    REQUIRE(limits.of_strangers() == 8);
    for (uid_t uid = 200'000; uid < 200'008; ++uid) CHECK(limits.enter(uid, false) == verdict::come);
    for (uid_t uid = 200'008; uid < 200'300; ++uid) CHECK(limits.enter(uid, false) == verdict::refuse);
    // The owners of sessions have all the rest, and what the others have is theirs when they need it.
    for (int i = 0; i < 32; ++i) CHECK(limits.enter(1, true) == verdict::come);
    for (int i = 0; i < 24; ++i) CHECK(limits.enter(2, true) == verdict::come);
    CHECK(limits.enter(3, true) == verdict::make_room);
    CHECK(limits.gives_way() >= 200'000);
    limits.leave(*limits.gives_way());
    // Who gets a session is a stranger no more.
    CHECK(limits.enter(200'009, true) == verdict::make_room);
    CHECK(limits.gives_way() >= 200'000);
}

TEST_CASE("connections: a stranger with many of them makes room for another", "[ckptd]") {
    using verdict = local_limits::verdict;
    local_limits limits(64);
    for (int i = 0; i < 8; ++i) CHECK(limits.enter(5, false) == verdict::come);
    CHECK(limits.enter(6, false) == verdict::make_room);
    CHECK(limits.gives_way() == 5U);
}

TEST_CASE("a process is alive until it ends, whoever has its number next", "[ckptd]") {
    std::array<int, 2> pair{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) == 0);
    const banyan::unique_fd one(pair[0]), two(pair[1]);
    const process own(one.get(), ::getpid(), process::started_of(::getpid()));
    CHECK(own.alive());
    const pid_t child = ::fork();
    if (child == 0) {
        ::pause();
        ::_exit(0);
    }
    const process other(-1, child, process::started_of(child));
    CHECK(other.alive());
    ::kill(child, SIGKILL);
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
    CHECK_FALSE(other.alive());  // a zombie has ended; kill(pid, 0) would still find it
    ::waitpid(child, nullptr, 0);
    CHECK_FALSE(other.alive());
}

TEST_CASE("whoever asks without end takes turns, root waits never", "[ckptd]") {
    using namespace std::chrono_literals;
    using demand = local_limits::demand;
    local_limits limits(8);
    const auto now = banyan::clock::time_point{} + 1h;
    REQUIRE(limits.enter(1000, true) == local_limits::verdict::come);
    REQUIRE(limits.enter(1001, true) == local_limits::verdict::come);
    auto waits = 0ns;
    const auto ask = [&](uid_t uid, demand what) { return limits.turn(uid, what, now); };
    for (int i = 0; i < 100; ++i) CHECK(ask(1000, demand::request) == 0ns);
    for (int i = 0; i < 500; ++i)
        waits = std::max<std::chrono::nanoseconds>(waits, ask(1000, demand::request));
    CHECK(waits == 1000ms);
    // What a rank saves meanwhile is heard.
    for (int i = 0; i < 1000; ++i) CHECK(ask(1000, demand::note) == 0ns);
    for (int i = 0; i < 1000; ++i) waits = ask(1000, demand::note);
    CHECK(waits == 1000ms);
    CHECK(ask(1001, demand::request) == 0ns);
    CHECK(ask(0, demand::request) == 0ns);
    CHECK(limits.turn(1000, demand::request, now + 2s) == 0ns);
    CHECK(ask(4711, demand::request) == 0ns);  // without a connection
}

TEST_CASE("a long answer costs more turns than a short one", "[ckptd]") {
    using namespace std::chrono_literals;
    using demand = local_limits::demand;
    local_limits limits(8);
    const auto now = banyan::clock::time_point{} + 1h;
    REQUIRE(limits.enter(1000, true) == local_limits::verdict::come);
    const auto ask = [&] { return limits.turn(1000, demand::status, now); };
    CHECK(ask() == 0ns);
    limits.answered(1000, 40 * 4096);  // 41 requests, of which one has been paid
    CHECK(ask() == 0ns);               // 82 ms + 82 ms
    CHECK(ask() == 46ms);
    // A short one in between makes the next long one little cheaper.
    limits.answered(1000, 10);
    CHECK(ask() == 46ms + 2ms * 35);
    for (int i = 0; i < 100; ++i) limits.answered(1000, 10);
    CHECK(ask() == 46ms + 2ms * 36);
    CHECK(limits.turn(1000, demand::note, now) == 0ns);
}

TEST_CASE("who hangs up and comes again owes what he has asked for", "[ckptd]") {
    using namespace std::chrono_literals;
    using demand = local_limits::demand;
    local_limits limits(8);
    const auto now = banyan::clock::time_point{} + 1h;
    for (int i = 0; i < 150; ++i) {
        REQUIRE(limits.enter(1000, true) == local_limits::verdict::come);
        CHECK((limits.turn(1000, demand::request, now) == 0ns) == (i < 100));
        limits.leave(1000, now);
    }
    REQUIRE(limits.enter(1001, true) == local_limits::verdict::come);
    limits.leave(1001, now + 1s);  // all is paid
    REQUIRE(limits.enter(1000, true) == local_limits::verdict::come);
    CHECK(limits.turn(1000, demand::request, now) == 0ns);
}

TEST_CASE("who leaves his answers unread gets no more long ones", "[ckptd]") {
    local_limits limits(8);
    REQUIRE(limits.enter(1000, true) == local_limits::verdict::come);
    limits.under_way(1000, 1 << 20);
    CHECK_FALSE(limits.reads_too_little(1000));
    limits.under_way(1000, 1);
    CHECK(limits.reads_too_little(1000));
    limits.under_way(1000, -1);
    CHECK_FALSE(limits.reads_too_little(1000));
    limits.under_way(0, 1 << 30);
    CHECK_FALSE(limits.reads_too_little(0));
}

}  // namespace test_fair_pool
