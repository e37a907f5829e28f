// SPDX-License-Identifier: BSD-3-Clause
//
// A job's way to its node's checkpoint daemon, with the real daemon. The hard moment is the one in which the
// daemon of the job before leaves: here a stand-in leaves at each point of the conversation, to the instant.
#include <csignal>
#include <thread>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../ckptd/cluster.hpp"
#include "common/fd.hpp"
#include "spank/launch.hpp"

using namespace banyan;
using namespace ckptd_test;

namespace {

/// A node without a daemon, and what a prolog there knows.
class node {
  public:
    node() : cluster_({1, "lease = \"1ms\"\n", {}}) {
        cluster_.kill(1, SIGTERM);
        settings_.config = cluster_.dir() + "/banyan.conf";
        settings_.ckptd = BANYAN_CKPTD;
        settings_.ckptd_log = cluster_.dir() + "/%n.log";
        paths_ = spank::find_daemon(settings_, cluster_.name(1)).value();
    }
    /// Whoever holds the lock goes; one that waits for it then finds no directory to bind in.
    ~node() {
        const unique_fd lock(::open((socket() + ".lock").c_str(), O_RDWR | O_CLOEXEC));
        eventually([&] {
            const auto now = cluster_.status(1);
            if (now.is_object()) ::kill(now["pid"].get<pid_t>(), SIGKILL);
            return ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
        });
    }

    result<ckpt::session_answer> open(std::uint64_t job) {
        auto request = cluster_.request(job, 1, 1, "", 0);
        request.self = cluster_.name(1);
        return spank::open_at_daemon(settings_, paths_, cluster_.addr(1), request, 10s);
    }
    bool holds(std::uint64_t job) const { return !cluster_.session(1, job).is_null(); }
    const std::string& socket() const { return paths_.socket; }
    spank::settings& settings() { return settings_; }
    json status() const { return cluster_.status(1); }

  private:
    cluster cluster_;
    spank::settings settings_;
    spank::daemon_paths paths_;
};

/// A daemon that is about to leave: takes `connections`, answers none, then its socket is gone.
class leaving_daemon {
  public:
    leaving_daemon(const std::string& path, int connections) : listener_(listen(path)) {
        thread_ = std::thread([this, path, connections] {
            std::vector<unique_fd> taken;
            for (int i = 0; i < connections; ++i)
                taken.emplace_back(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            ::unlink(path.c_str());
            listener_.reset();
        });
    }
    ~leaving_daemon() { thread_.join(); }

  private:
    static int listen(const std::string& path) {
        const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        path.copy(at.sun_path, sizeof at.sun_path - 1);
        REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
        REQUIRE(::listen(fd, 8) == 0);
        return fd;
    }

    unique_fd listener_;
    std::thread thread_;
};

}  // namespace

TEST_CASE("a job starts the daemon where none runs, and the next one meets it", "[launch]") {
    node n;
    REQUIRE(n.open(1));
    const auto first = n.status()["pid"];
    REQUIRE(n.open(2));
    CHECK(n.status()["pid"] == first);
    CHECK((n.holds(1) && n.holds(2)));
}

TEST_CASE("a daemon that leaves while a job asks it is followed by a new one", "[launch]") {
    // It is gone before the request, with the request, and after another job's request.
    const int connections = GENERATE(1, 2, 3);
    node n;
    const leaving_daemon old(n.socket(), connections);
    std::thread other;
    if (connections == 3) other = std::thread([&] { (void)n.open(2); });
    const auto opened = n.open(1);
    if (other.joinable()) other.join();
    INFO((opened ? std::string() : opened.error().text()));
    REQUIRE(opened);
    CHECK(n.holds(1));
    if (connections == 3) CHECK(n.holds(2));
}

TEST_CASE("a new daemon waits until the old one is gone", "[launch]") {
    node n;
    const unique_fd lock(::open((n.socket() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    REQUIRE(::flock(lock.get(), LOCK_EX) == 0);
    bool done = false;
    std::thread job([&] { done = n.open(1).has_value(); });
    std::this_thread::sleep_for(200ms);
    CHECK(n.status().is_null());
    ::flock(lock.get(), LOCK_UN);
    job.join();
    CHECK(done);
    CHECK(n.holds(1));
}

TEST_CASE("jobs back to back on one node: each gets its session", "[launch]") {
    node n;
    for (std::uint64_t job = 1; job <= 24; ++job) {
        const auto opened = n.open(job);
        INFO("job " << job << (opened ? std::string() : ": " + opened.error().text()));
        REQUIRE(opened);
        REQUIRE(n.holds(job));
        REQUIRE(ckpt::session_detach(n.socket(), job, 5s));
        // The daemon looks every 250 ms whether it is needed: every third job starts before, the others
        // as it leaves.
        if (job % 3 != 0) CHECK(eventually([&] { return ::access(n.socket().c_str(), F_OK) != 0; }));
    }
}

TEST_CASE("a daemon that cannot start is said with the place to look", "[launch]") {
    node n;
    n.settings().ckptd = "/usr/bin/false";
    const auto opened = n.open(1);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == errc::unavailable);
    CHECK(opened.error().text().find("/n1.log") != std::string::npos);
}
