// SPDX-License-Identifier: BSD-3-Clause
//
// A job's way to its node's checkpoint daemon, with the real daemon. The hard moment is the one in which the
// daemon of the job before leaves: here a stand-in leaves at each point of the conversation, to the instant.
#include <csignal>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ckptd/cluster.hpp"
#include "common/fd.hpp"
#include "common/file.hpp"
#include "spank/launch.hpp"
#include "spank/note.hpp"
#include "spank/outside_job.hpp"
#include "test/built.hpp"

namespace test_launch {

using namespace banyan;
using namespace ckptd_test;

namespace {

/// A node without a daemon, and what a prolog there knows.
class node {
  public:
    node() : cluster_({1, "retention = \"1ms\"\n", {}}) {
        cluster_.kill(1, SIGTERM);
        settings_.config = cluster_.dir() + "/banyan.conf";
        wrap_daemon("");
        // Daemons outlive who has started them, and are this process's to wait for.
        ::prctl(PR_SET_CHILD_SUBREAPER, 1);
        address_ = cluster_.addr(1);
        settings_.ckptd_log = cluster_.dir() + "/%n.log";
        paths_ = spank::find_daemon(settings_, cluster_.name(1)).value();
    }
    /// Whoever holds the lock goes; one that waits for it then finds no directory to bind in.
    ~node() {
        const unique_fd lock(::open((socket() + ".lock").c_str(), O_RDWR | O_CLOEXEC));
        eventually([&] {
            const auto now = cluster_.status(1);
            if (now.is_object()) ::kill(now["pid"].get<pid_t>(), SIGTERM);
            return ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
        });
    }

    result<ckpt::session_answer> open(std::uint64_t job) {
        auto request = cluster_.request(job, 1, 1, "", 0);
        request.self = cluster_.name(1);
        return spank::open_at_daemon(settings_, paths_, address_, request, 10s);
    }
    void bind_to(const std::string& address) { address_ = address; }
    void wrap_daemon(const std::string& option) {
        settings_.ckptd = cluster_.dir() + "/wrapper";
        std::ofstream(settings_.ckptd)
            << "#!/bin/sh\nexport BANYAN_CLOCK=" << std::getenv("BANYAN_CLOCK") << "\nexec "
            << banyan::testing::built("banyan-ckptd") << ' ' << option << " \"$@\"\n";
        REQUIRE(::chmod(settings_.ckptd.c_str(), 0755) == 0);
    }
    void configure(const std::string& line) { std::ofstream(settings_.config, std::ios::app) << line; }
    /// Listens where the daemon wants to.
    unique_fd take_port() const {
        unique_fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(cluster_.port());
        REQUIRE(::inet_pton(AF_INET, cluster_.addr(1).c_str(), &at.sin_addr) == 1);
        REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
        REQUIRE(::listen(fd.get(), 1) == 0);
        return fd;
    }
    std::string log() const { return read_file(cluster_.dir() + "/n1.log", 1 << 20).value_or(""); }
    const spank::daemon_paths& paths() const { return paths_; }
    bool holds(std::uint64_t job) const { return !cluster_.session(1, job).is_null(); }
    const std::string& socket() const { return paths_.socket; }
    spank::settings& settings() { return settings_; }
    json status() const { return cluster_.status(1); }

  private:
    cluster cluster_;
    spank::settings settings_;
    spank::daemon_paths paths_;
    std::string address_;
};

/// A process beside the test's own. Not a thread: starting a daemon forks.
class beside {
  public:
    template <class Work>
    explicit beside(Work work) : pid_(::fork()) {
        if (pid_ == 0) ::_exit(work() ? 0 : 1);
    }
    ~beside() { join(); }
    beside(const beside&) = delete;
    /// Whether its work went well; false when asked again.
    bool join() {
        int status = 1;
        if (pid_ > 0) ::waitpid(std::exchange(pid_, -1), &status, 0);
        return status == 0;
    }

  private:
    pid_t pid_;
};

/// A daemon that is about to leave: takes `connections`, answers none, then its socket is gone.
bool leave_after(const unique_fd& listener, const std::string& path, int connections) {
    std::vector<unique_fd> taken;
    for (int i = 0; i < connections; ++i)
        taken.emplace_back(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return ::unlink(path.c_str()) == 0;
}

unique_fd listen_at(const std::string& path) {
    unique_fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::listen(fd.get(), 8) == 0);
    return fd;
}

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
    unique_fd listener = listen_at(n.socket());
    beside old([&] { return leave_after(listener, n.socket(), connections); });
    listener.reset();
    std::optional<beside> other;
    if (connections == 3) other.emplace([&] { return n.open(2).has_value(); });
    const auto opened = n.open(1);
    INFO((opened ? std::string() : opened.error().text()));
    REQUIRE(opened);
    CHECK(n.holds(1));
    CHECK(old.join());
    if (other) {
        CHECK(other->join());
        CHECK(n.holds(2));
    }
}

TEST_CASE("a daemon that a step starts is none of the step's", "[launch]") {
    using list = std::vector<std::string>;
    CHECK(spank::cgroups_outside_job("0::/system.slice/slurmstepd.scope/job_7/step_0/slurm\n") ==
          list{"/sys/fs/cgroup/system.slice/slurmstepd.scope/system/cgroup.procs"});
    CHECK(spank::cgroups_outside_job(
              "0::/system.slice/n1_slurmstepd.scope/sEKNKTV3WPV500/step_batch/user/job_7\n") ==
          list{"/sys/fs/cgroup/system.slice/n1_slurmstepd.scope/system/cgroup.procs"});
    CHECK(spank::cgroups_outside_job(
              "9:memory:/slurm/uid_0/job_7/step_0\n5:cpu,cpuacct:/system.slice/slurmd.service\n"
              "4:freezer:/slurm_n01/uid_0/job_7/step_0\n1:name=systemd:/system.slice/slurmd.service\n") ==
          list{"/sys/fs/cgroup/memory/slurm/cgroup.procs", "/sys/fs/cgroup/freezer/slurm_n01/cgroup.procs"});
    for (const auto* outside :
         {"", "0::/system.slice/slurmd.service\n", "0::/\n", "job_7", "::", "0:/job_7/:", "\n\n",
          "0::/x/step_0\n", "0::/step_0\n", "0::/sEKNKTV3WPV500\n", "0::/a/sEKNKTV3WPV5oo/step_0\n"})
        CHECK(spank::cgroups_outside_job(outside).empty());
}

TEST_CASE("a new daemon waits until the old one is gone", "[launch]") {
    node n;
    unique_fd lock(::open((n.socket() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    REQUIRE(::flock(lock.get(), LOCK_EX) == 0);
    beside job([&] {
        lock.reset();
        return n.open(1).has_value();
    });
    CHECK_FALSE(within(300ms, [&] { return !n.status().is_null(); }));
    lock.reset();
    CHECK(job.join());
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
    CHECK(opened.error().what == "the checkpoint daemon cannot start: it ended without a word");
    CHECK(opened.error().text().find("/n1.log") != std::string::npos);
}

TEST_CASE("why a daemon cannot start is what its own log says", "[launch]") {
    node n;
    std::string reason;
    unique_fd taken;
    SECTION("its port is taken") {
        taken = n.take_port();
        reason = "Address already in use";
    }
    SECTION("its configuration is wrong") {
        n.configure("kepe = 3\n");
        reason = "[ckptd] has no key \"kepe\"";
    }
    SECTION("its address is a name that nobody knows") {
        n.bind_to("no-such-name.invalid");
        reason = "cannot listen on \"no-such-name.invalid\": no such address or name";
    }
    SECTION("it does not know an option, as one of another release") {
        n.wrap_daemon("--of-another-release");
        reason = "--of-another-release";
    }
    const auto opened = n.open(1);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().what.starts_with("the checkpoint daemon cannot start: "));
    CHECK(opened.error().what.find(reason) != std::string::npos);
    CHECK(n.log().find(reason) != std::string::npos);
}

TEST_CASE("a program that is not there is said, too", "[launch]") {
    node n;
    n.settings().ckptd = "/etc/hostname";  // root's, trusted, and no program
    const auto opened = n.open(1);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().what.find("cannot run /etc/hostname: ") != std::string::npos);
}

TEST_CASE("what the prolog found out reaches the tasks, and no longer than the job", "[launch]") {
    node n;
    CHECK(spank::read_note(n.paths(), 7).empty());
    spank::leave_note(n.paths(), 7, "the port is taken\n\x1b[2J");
    CHECK(spank::read_note(n.paths(), 7) == "the port is taken\\n\\x1b[2J");
    CHECK(spank::read_note(n.paths(), 8).empty());
    spank::remove_note(n.paths(), 7);
    CHECK(spank::read_note(n.paths(), 7).empty());
}

}  // namespace test_launch
