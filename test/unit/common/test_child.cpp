// SPDX-License-Identifier: BSD-3-Clause
#include <csignal>
#include <filesystem>
#include <iterator>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.hpp"
#include "common/command.hpp"

namespace test_child {

using namespace banyan;
using clock_type = banyan::clock;
using std::chrono::seconds;

namespace {

std::size_t descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) >= 0; }

}  // namespace

TEST_CASE("how a child ended comes back", "[child]") {
    auto exits = child::start({"sh", "-c", "exit 7"});
    REQUIRE(exits);
    CHECK(exits->ends_by(clock_type::now() + seconds(30)));
    CHECK(exits->wait().code == 7);
    auto killed = child::start({"sh", "-c", "kill -9 $$"});
    REQUIRE(killed);
    const auto end = killed->wait();
    CHECK(end.code == 137);
    CHECK(end.signal == SIGKILL);
    const auto absent = child::start({"/nowhere/program"});
    REQUIRE_FALSE(absent);
    CHECK(absent.error().code == errc::not_found);
}

TEST_CASE("a child that runs on is told so, and ends with its owner", "[child]") {
    {
        auto running = child::start({"sleep", "600"});
        REQUIRE(running);
        CHECK_FALSE(running->ends_by(clock_type::now() + std::chrono::milliseconds(1)));
        const auto moved = std::move(*running);
        CHECK(::kill(moved.pid(), 0) == 0);
    }
    CHECK_FALSE(has_children());
}

TEST_CASE("what a child is started with", "[child]") {
    child_setup setup;
    setup.own_group = true;
    auto grouped = child::start({"sh", "-c", "test $(ps -o pgid= -p $$) = $$"}, setup);
    REQUIRE(grouped);
    CHECK(grouped->wait().code == 0);
    // Nothing is blocked unless somebody says so: what we block is ours.
    sigset_t term, before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &term, &before);
    auto open = child::start({"sh", "-c", "kill -TERM $$; exit 3"});
    setup.blocked = term;
    auto closed = child::start({"sh", "-c", "kill -TERM $$; exit 3"}, setup);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    REQUIRE(open);
    CHECK(open->wait().code == 128 + SIGTERM);
    REQUIRE(closed);
    CHECK(closed->wait().code == 3);
}

TEST_CASE("a child that writes for nobody ends, though its parent ignores SIGPIPE", "[child]") {
    auto* const before = std::signal(SIGPIPE, SIG_IGN);
    auto child = child::start({"sh", "-c", "kill -PIPE $$; exit 0"});
    std::signal(SIGPIPE, before);
    REQUIRE(child);
    CHECK(child->wait().signal == SIGPIPE);
}

TEST_CASE("a host process keeps its descriptors, handlers and children", "[child]") {
    const auto before = descriptors();
    struct sigaction mine {
    }, after{};
    ::sigaction(SIGCHLD, nullptr, &mine);
    // As Asio opens a socket, it has no close-on-exec.
    for (const int command : {F_DUPFD_CLOEXEC, F_DUPFD}) {
        const unique_fd ours(::fcntl(STDIN_FILENO, command, 100));
        const auto path = "/proc/self/fd/" + std::to_string(ours.get());
        CHECK(::access(path.c_str(), F_OK) == 0);
        CHECK_FALSE(run_command({"test", "-e", path}, seconds(30)));
    }
    CHECK_FALSE(run_command({"sh", "-c", "echo x >&2; sleep 600"}, std::chrono::milliseconds(50)));
    CHECK_FALSE(run_command({"yes"}, seconds(30), 1000));
    CHECK_FALSE(run_command({"/nowhere/program"}, seconds(30)));
    ::sigaction(SIGCHLD, nullptr, &after);
    CHECK(descriptors() == before);
    CHECK(mine.sa_handler == after.sa_handler);
    CHECK_FALSE(has_children());
}

TEST_CASE("a command that ignores SIGTERM is killed a second later", "[child]") {
    const auto began = clock_type::now();
    const auto got = capture({"sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"},
                             {std::chrono::milliseconds(50), 1000});
    REQUIRE(got);
    CHECK(got->stopped == command_output::stop::late);
    CHECK(got->end.signal == SIGKILL);
    CHECK(clock_type::now() - began >= seconds(1));
}

TEST_CASE("a command's own end is told apart from ours", "[child]") {
    const auto got = capture({"sh", "-c", "echo out; printf 'a\n b \n\n' >&2; exit 4"}, {seconds(30)});
    REQUIRE(got);
    CHECK_FALSE(got->good());
    CHECK(got->stopped == command_output::stop::ended);
    CHECK(got->end.code == 4);
    CHECK(got->text == "out\n");
    CHECK(got->last_line == "b");
    CHECK(capture({"cat"}, {seconds(30)})->text.empty());  // its input is empty, whatever ours is
}

TEST_CASE("work in a fork gives its exit code", "[child]") {
    CHECK(run_forked([] { return 5; })->code == 5);
    CHECK(run_forked([]() -> int {
              ::raise(SIGKILL);
              return 0;
          })->signal == SIGKILL);
    CHECK_FALSE(has_children());
}

TEST_CASE("what is asked for in a fork comes back whole, or not at all and in time", "[child]") {
    const auto before = descriptors();
    const std::string much(1u << 20, 'x');
    CHECK(ask_forked([&] { return much; }, clock_type::now() + seconds(30)).value() == much);
    CHECK(ask_forked([] { return std::string(); }, clock_type::now() + seconds(30)).value().empty());
    const auto died = [] {
        ::raise(SIGKILL);
        return std::string("never");
    };
    CHECK(ask_forked(died, clock_type::now() + seconds(30)).error().code == errc::unavailable);
    const auto hangs = [] {
        for (;;) ::pause();
        return std::string();
    };
    const auto began = clock_type::now();
    CHECK(ask_forked(hangs, began + std::chrono::milliseconds(50)).error().what == "no answer in time");
    CHECK(clock_type::now() < began + seconds(20));
    CHECK_FALSE(has_children());
    CHECK(descriptors() == before);
}

}  // namespace test_child
