// SPDX-License-Identifier: BSD-3-Clause
//
// The keeper's own rules, with a stand-in for the daemon: which ends cost what it holds, and which do not.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckptd/keeper/messages.hpp"
#include "test/built.hpp"
#include "test/idle_clock.hpp"

namespace fs = std::filesystem;
namespace keeper = banyan::ckpt::keeper;
using namespace std::chrono_literals;

namespace {

/// A keeper and what its daemons are to do, one after the other; the last one again and again.
class kept {
  public:
    explicit kept(const std::vector<std::string>& script, std::vector<std::string> by = {}) {
        say(script);
        for (const auto& word : {banyan::testing::built("banyan-ckpt-keeper"),
                                 banyan::testing::built("ckptd_keeper_stub"), folder_})
            by.push_back(word);
        pid_ = ::fork();
        if (pid_ != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        std::vector<char*> words;
        for (auto& word : by) words.push_back(word.data());
        words.push_back(nullptr);
        ::execvp(words[0], words.data());
        ::_exit(127);
    }
    ~kept() {
        if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
    }
    kept(const kept&) = delete;

    void say(const std::vector<std::string>& script) const {
        std::ofstream file(folder_ + "/next");
        for (const auto& line : script) file << line << '\n';
        file.close();
        fs::rename(folder_ + "/next", folder_ + "/script");
    }
    /// What the daemons have logged, without their numbers.
    std::vector<std::string> log() {
        std::vector<std::string> out;
        std::ifstream file(folder_ + "/log");
        for (std::string line; std::getline(file, line);) {
            const auto at = line.rfind(' ');
            newest_ = std::stoi(line.substr(at + 1));
            out.push_back(line.substr(0, at));
        }
        return out;
    }
    /// Waits until so many have logged.
    bool has_logged(std::size_t lines) {
        return banyan::testing::eventually([&] { return log().size() >= lines; });
    }
    bool has_logged(std::size_t lines, std::chrono::milliseconds time) {
        return banyan::testing::within(time, [&] { return log().size() >= lines; });
    }
    void kill_daemon() {
        log();
        ::kill(newest_, SIGKILL);
    }
    void signal(int s) const { ::kill(pid_, s); }
    /// The keeper's exit status, in time; -1: it goes on.
    int ended(std::chrono::milliseconds time) {
        int status = 0;
        if (!banyan::testing::within(time, [&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }))
            return -1;
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
    }

  private:
    static std::string new_folder() {
        std::string pattern = (fs::temp_directory_path() / "banyan-keeper-XXXXXX").string();
        return ::mkdtemp(pattern.data());
    }

    const std::string folder_ = new_folder();
    banyan::testing::idle_clock time_{folder_ + "/clock"};
    pid_t pid_ = -1, newest_ = -1;
};

}  // namespace

TEST_CASE("a daemon that cannot start costs nothing of what is held", "[keeper]") {
    const std::string why = GENERATE("exit 2", "die");
    kept k({"serve", why, why, why, why, "serve"});
    REQUIRE(k.has_logged(1));
    k.kill_daemon();
    REQUIRE(k.has_logged(why == "die" ? 2 : 6));
    CHECK(k.log().front() == "serve: 0 0");
    CHECK(k.log().back() == "serve: 1 1");
}

TEST_CASE("a daemon that dies of what it is given is given nothing, and nobody takes its place", "[keeper]") {
    kept k({"serve", "read, die", "read, die", "read, die", "serve"});
    REQUIRE(k.has_logged(1));
    k.kill_daemon();
    REQUIRE(k.has_logged(5));
    CHECK(k.log() == std::vector<std::string>{"serve: 0 0", "read, die: 1 1", "read, die: 1 1",
                                              "read, die: 0 1", "serve: 0 1"});
}

TEST_CASE("a keeper that holds nothing ends with a daemon that cannot start", "[keeper]") {
    kept k({"exit 3"});
    CHECK(k.ended(10s) == 3);
}

TEST_CASE("a keeper that waits with the next start does what it is told", "[keeper]") {
    kept k({"serve", "exit 2"});
    REQUIRE(k.has_logged(1));
    k.kill_daemon();
    REQUIRE(k.has_logged(7));  // the next pause is longer than a second
    SECTION("to replace the daemon") {
        k.say({"serve"});
        k.signal(SIGUSR1);
        REQUIRE(k.has_logged(8, 900ms));
        CHECK(k.log().back() == "serve: 1 1");
    }
    SECTION("to end") {
        k.signal(SIGTERM);
        CHECK(k.ended(900ms) == 0);
    }
}

TEST_CASE("a daemon that was told to end is not started again", "[keeper]") {
    kept k({"serve"});
    REQUIRE(k.has_logged(1));
    k.signal(SIGTERM);  // of which the stand-in dies
    CHECK(k.ended(10s) == 0);
    CHECK(k.log().size() == 1);
}

TEST_CASE("descriptors that the kernel refuses for now are handed over a moment later", "[keeper]") {
    // It counts those on their way of all processes of a user, unless one may have any number.
    std::vector<std::string> by{"prlimit", "--nofile=256:256"};
    if (::geteuid() == 0) by.insert(by.begin(), {"setpriv", "--bounding-set=-sys_resource,-sys_admin"});
    kept k({"serve"}, by);
    REQUIRE(k.has_logged(1));
    std::vector<banyan::unique_fd> full;
    for (int pair = 0; pair < 3; ++pair) {
        std::array<int, 2> ends{};
        REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0);
        for (const int end : ends) full.emplace_back(end);
        for (int i = 0; i < 150; ++i) REQUIRE(keeper::send_record(ends[0], {}, STDERR_FILENO));
    }
    k.kill_daemon();
    CHECK_FALSE(k.has_logged(2, 700ms));
    full.clear();
    REQUIRE(k.has_logged(2));
    CHECK(k.log().back() == "serve: 1 1");
}
