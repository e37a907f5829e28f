// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <csignal>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckptd/daemon/process_watch.hpp"

namespace test_process {

using banyan::ckpt::process;
using banyan::ckpt::process_watch;

namespace {

/// Lives until end() and is a zombie until reap().
class child {
  public:
    child() : pid_(::fork()) {
        if (pid_ != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) ::pause();
    }
    child(const child&) = delete;
    ~child() {
        if (!reaped_) end();
        reap();
    }
    pid_t pid() const { return pid_; }
    /// It is a zombie when this returns.
    void end() const {
        siginfo_t none{};
        ::kill(pid_, SIGKILL);
        if (!reaped_) ::waitid(P_PID, static_cast<id_t>(pid_), &none, WEXITED | WNOWAIT);
    }
    void reap() {
        if (!reaped_) ::waitpid(pid_, nullptr, 0);
        reaped_ = true;
    }

  private:
    pid_t pid_;
    bool reaped_ = false;
};

}  // namespace

TEST_CASE("a process is known by its number and its start") {
    child c;
    const auto started = process::started_of(c.pid());
    REQUIRE(started != 0);
    CHECK(process(c.pid(), started).alive());
    CHECK_FALSE(process(c.pid(), started - 1).alive());
    CHECK_FALSE(process(c.pid(), 0).alive());
}

TEST_CASE("whoever has the number of a process that connected is not that process") {
    std::array<int, 2> pair{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) == 0);
    const auto started = process::started_of(::getpid());
    CHECK(process(pair[0], ::getpid(), started).alive());
    CHECK_FALSE(process(pair[0], ::getpid(), started + 1).alive());
    ::close(pair[0]);
    ::close(pair[1]);
}

TEST_CASE("the end of a process is told once, before anybody reaps it") {
    boost::asio::io_context io;
    child c;
    const auto of = std::make_shared<const process>(c.pid(), process::started_of(c.pid()));
    int told = 0;
    process_watch watch(io, of, [&] { ++told; });
    io.poll();
    CHECK(told == 0);
    c.end();
    io.restart();
    io.run();  // until nothing is left to be told
    CHECK(told == 1);
    CHECK_FALSE(of->alive());
    CHECK(of->fd() < 0);  // it is of no use any more
}

TEST_CASE("without a descriptor left a process is not seen, which is no end") {
    child c;
    const auto started = process::started_of(c.pid());
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{3, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const process by_number(c.pid(), started), by_socket(-1, c.pid(), started);
    const auto now = process::started_of(c.pid());
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(now == process::unseen);
    CHECK(by_number.is_unseen());
    CHECK(by_number.alive());
    CHECK(by_socket.is_unseen());
    CHECK_FALSE(process(-1, c.pid(), started).is_unseen());
    // Nor of one that could not be looked at when it connected.
    CHECK(process(-1, c.pid(), process::unseen).is_unseen());
}

TEST_CASE("a process that has ended before is told of from the loop") {
    boost::asio::io_context io;
    child c;
    const auto started = process::started_of(c.pid());
    c.end();
    c.reap();
    int told = 0;
    process_watch watch(io, std::make_shared<const process>(c.pid(), started), [&] { ++told; });
    CHECK(told == 0);
    io.run();
    CHECK(told == 1);
}

TEST_CASE("nobody is told once the watch is gone, and the process keeps its descriptor") {
    boost::asio::io_context io;
    child c;
    const auto of = std::make_shared<const process>(c.pid(), process::started_of(c.pid()));
    int told = 0;
    auto first = std::make_unique<process_watch>(io, of, [&] { ++told; });
    c.end();
    first.reset();
    io.run();
    CHECK(told == 0);
    CHECK_FALSE(of->alive());
    process_watch second(io, of, [&] { ++told; });
    io.restart();
    io.run();
    CHECK(told == 1);
}

TEST_CASE("whoever is told may end the watch") {
    boost::asio::io_context io;
    child c;
    const auto of = std::make_shared<const process>(c.pid(), process::started_of(c.pid()));
    std::unique_ptr<process_watch> watch;
    bool told = false;
    watch = std::make_unique<process_watch>(io, of, [&] {
        watch.reset();
        told = true;
    });
    c.end();
    io.run();
    CHECK(told);
}

}  // namespace test_process
