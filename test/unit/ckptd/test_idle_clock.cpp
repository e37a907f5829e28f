// SPDX-License-Identifier: BSD-3-Clause
//
// Time that goes on while nobody works: of this process, and of those below it.
#include <array>
#include <filesystem>
#include <thread>

#include <catch2/catch.hpp>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/idle_clock.hpp"
#include "test/scratch_path.hpp"

namespace test_idle_clock {

using namespace std::chrono_literals;
using banyan::testing::idle_clock;

namespace {

std::string file() { return banyan::testing::scratch_path("idle-clock"); }

/// A child's child, which works without end.
class busy_grandchild {
  public:
    busy_grandchild() {
        std::array<int, 2> ends{};
        REQUIRE(::pipe(ends.data()) == 0);
        parent_ = ::fork();
        if (parent_ == 0) {
            const pid_t child = ::fork();
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (child == 0)
                for (;;) continue;
            (void)!::write(ends[1], &child, sizeof child);
            for (;;) ::pause();
        }
        REQUIRE(::read(ends[0], &pid_, sizeof pid_) == sizeof pid_);
        for (const int end : ends) ::close(end);
    }
    ~busy_grandchild() {
        ::kill(pid_, SIGKILL);
        ::kill(parent_, SIGKILL);
        ::waitpid(parent_, nullptr, 0);
    }
    busy_grandchild(const busy_grandchild&) = delete;
    pid_t pid() const { return pid_; }

  private:
    pid_t parent_ = -1, pid_ = -1;
};

/// How much time passes while this process sleeps for `time` of the kernel's, and the most that does where
/// somebody works all the while.
struct passed {
    banyan::clock::duration held, at_most_beside_work;
};
passed asleep_for(std::chrono::milliseconds time) {
    const auto from = std::chrono::steady_clock::now();
    const auto before = banyan::clock::now();
    std::this_thread::sleep_for(time);
    const auto held = banyan::clock::now() - before;
    return {held, (std::chrono::steady_clock::now() - from) / 10 + 10ms};
}

}  // namespace

TEST_CASE("who sleeps until a time comes there soon, where nobody works", "[clock]") {
    const idle_clock time(file());
    const auto before = banyan::clock::now();
    banyan::clock::sleep_for(2s);
    CHECK(banyan::clock::now() >= before + 2s);
    CHECK(banyan::testing::within(1s, [&] { return banyan::clock::now() >= before + 2500ms; }));
    CHECK_FALSE(banyan::testing::within(1s, [&] { return banyan::clock::now() >= before + 1h; }));
}

TEST_CASE("work of a process below this one holds the time, unless that never rests", "[clock]") {
    idle_clock time(file());
    const busy_grandchild worker;
    const auto beside = asleep_for(250ms);
    CHECK(beside.held <= beside.at_most_beside_work);
    time.ignore(worker.pid());
    CHECK(banyan::testing::eventually([] {
        const auto now = asleep_for(50ms);
        return now.held > now.at_most_beside_work;
    }));
}

TEST_CASE("work of this process holds the time", "[clock]") {
    const idle_clock time(file());
    const auto from = std::chrono::steady_clock::now();
    const auto before = banyan::clock::now();
    while (std::chrono::steady_clock::now() < from + 50ms) continue;
    CHECK(banyan::clock::now() - before <= (std::chrono::steady_clock::now() - from) / 10 + 10ms);
}

}  // namespace test_idle_clock
