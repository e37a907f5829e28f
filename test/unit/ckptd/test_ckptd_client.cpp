// SPDX-License-Identifier: BSD-3-Clause
//
// The library in a process that does more than train: it forks, waits beside its saves, becomes another rank;
// and asks for its state while the daemon is away.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <banyan/ckpt.h>
#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.hpp"

namespace test_ckptd_client {

using namespace ckptd_test;

namespace {

constexpr std::size_t bytes = 3'000'000;

/// This process is the rank, until the end of the test.
struct rank_here {
    std::vector<unsigned char> state = std::vector<unsigned char>(bytes);

    explicit rank_here(const std::string& socket) {
        ::setenv("BANYAN_CKPT_SOCKET", socket.c_str(), 1);
        ::setenv("BANYAN_CKPT_WAIT_MS", "1500", 1);
    }
    ~rank_here() {
        bck_finalize(0);
        ::unsetenv("BANYAN_CKPT_SOCKET");
        ::unsetenv("BANYAN_CKPT_WAIT_MS");
    }
    int init(std::uint64_t job = 1, int rank = 0, int world = 1) {
        const int code = bck_init(std::to_string(job).c_str(), rank, world);
        bck_protect_bytes("state", state.data(), state.size());
        return code;
    }
    int save(std::uint64_t step) {
        std::memset(state.data(), static_cast<int>(step), state.size());
        return bck_checkpoint(step);
    }
    /// Of which step the state is; 0 where it is of none.
    unsigned step_of_state() const {
        return state == std::vector<unsigned char>(state.size(), state[0]) ? state[0] : 0;
    }
};

/// Where the buffers lie.
struct range {
    std::uintptr_t first = 0, last = 0;
};

range buffers() {
    range out;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find("/memfd:banyan-") == std::string::npos || line.find(" rw-s ") == std::string::npos)
            continue;
        std::size_t end_of_first = 0;
        const auto first = std::stoull(line, &end_of_first, 16);
        if (out.first == 0) out.first = first;
        out.last = std::stoull(line.substr(end_of_first + 1), nullptr, 16);
    }
    return out;
}

// ThreadSanitizer starts a thread in a child, whose stack lies where the parent has buffers.
#ifdef __SANITIZE_THREAD__
constexpr bool gap_is_free = false;
#else
constexpr bool gap_is_free = true;
#endif

/// What a child that does this exits with, or -signal.
template <class Work>
int in_a_child(const Work& work) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::signal(SIGSEGV, SIG_DFL);
        ::alarm(60);
        ::_exit(work());
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

pid_t daemon_of(const cluster& c) {
    const auto now = c.status(1);
    return now.is_object() ? now["pid"].get<pid_t>() : -1;
}

}  // namespace

TEST_CASE("what a forked child maps where its parent has buffers stays the child's", "[ckptd]") {
    if (!gap_is_free) return;
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 1, "", 0));
    rank_here rank(c.socket(1));
    REQUIRE(rank.init() == BCK_OK);
    REQUIRE(rank.save(1) == BCK_OK);
    const auto at = buffers();
    REQUIRE(at.last > at.first);
    const auto calls = GENERATE(as<std::string>(), "init", "finalize", "wait", "restart");
    CAPTURE(calls);
    CHECK(in_a_child([&] {
              const auto size = at.last - at.first;
              auto* const own = static_cast<unsigned char*>(
                  ::mmap(reinterpret_cast<void*>(at.first), size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
              if (own != reinterpret_cast<unsigned char*>(at.first)) return 1;
              std::memset(own, 0x5a, size);
              if (calls == "init" && bck_init("1", 0, 1) != BCK_OK) return 2;
              if (calls == "wait" && bck_wait(1, BCK_MEMORY, 0) != BCK_E_INVALID) return 3;
              if (calls == "restart" && bck_restart(nullptr, nullptr) != BCK_E_INVALID) return 4;
              if (calls != "init") bck_finalize(1);
              for (std::size_t i = 0; i < size; ++i)
                  if (own[i] != 0x5a) return 5;
              return 0;
          }) == 0);
    CHECK(rank.save(2) == BCK_OK);
    CHECK(bck_wait(2, BCK_MEMORY, 5000) == BCK_OK);
}

TEST_CASE("a child that is forked in the middle of a call does not wait for the thread that makes it",
          "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 1, "", 0));
    rank_here rank(c.socket(1));
    REQUIRE(rank.init() == BCK_OK);
    REQUIRE(rank.save(1) == BCK_OK);
    c.kill(1, SIGSTOP);
    int last = 0;
    std::thread saves([&] {
        for (std::uint64_t step = 2; last == BCK_OK && step < 9; ++step) last = rank.save(step);
    });
    pass(500ms);  // in the save that finds no buffer, which takes no less
    CHECK(in_a_child([] {
              if (bck_checkpoint(9) != BCK_E_INVALID) return 1;
              bck_finalize(0);
              return 0;
          }) == 0);
    saves.join();
    CHECK(last == BCK_E_BUSY);
    c.kill(1, SIGCONT);
}

TEST_CASE("a thread that waits for a step holds nobody up", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 1, "", 0));
    rank_here rank(c.socket(1));
    REQUIRE(rank.init() == BCK_OK);
    REQUIRE(rank.save(1) == BCK_OK);
    int waited = 1;
    std::thread waits([&] { waited = bck_wait(3, BCK_MEMORY, 8000); });
    pass(100ms);
    const auto before = banyan::clock::now();
    SECTION("for what is saved meanwhile") {
        CHECK(rank.save(2) == BCK_OK);
        rank.state.resize(3 * bytes);  // the buffers move
        bck_protect_bytes("state", rank.state.data(), rank.state.size());
        CHECK(rank.save(3) == BCK_OK);
        waits.join();
        CHECK(waited == BCK_OK);
    }
    SECTION("for what never comes") {
        CHECK(bck_finalize(0) == BCK_OK);
        waits.join();
        CHECK(waited == BCK_E_INVALID);
    }
    CHECK(banyan::clock::now() - before < 4s);
}

TEST_CASE("no step is above the last one that there can be", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 1, "", 0));
    rank_here rank(c.socket(1));
    REQUIRE(rank.init() == BCK_OK);
    REQUIRE(rank.save(1) == BCK_OK);
    // A program's "nothing was saved".
    CHECK(bck_wait(std::numeric_limits<std::uint64_t>::max(), BCK_DURABLE, 0) == BCK_E_INVALID);
    CHECK(bck_wait(1'000'000'000'000, BCK_SEALED, 0) == BCK_E_INVALID);
}

TEST_CASE("a process that becomes another rank saves as that one", "[ckptd]") {
    cluster c({1, "", {}});
    const auto storage = c.dir() + "/storage";
    REQUIRE(::mkdir(storage.c_str(), 0700) == 0);
    c.open(c.request(1, 1, 2, storage, 1));
    rank_here rank(c.socket(1));
    for (const int r : {0, 1}) {
        CAPTURE(r);
        REQUIRE(rank.init(1, r, 2) == BCK_OK);
        CHECK(rank.save(5) == BCK_OK);  // which this rank has not saved yet
    }
    CHECK(bck_wait(5, BCK_DURABLE, 10'000) == BCK_OK);
    c.new_step(1, 1, {1});
    for (const int r : {0, 1}) {
        CAPTURE(r);
        rank.state.assign(bytes, 0);
        REQUIRE(rank.init(1, r, 2) == BCK_OK);
        std::uint64_t step = 0;
        CHECK(bck_restart(&step, nullptr) == BCK_OK);
        CHECK(step == 5);
        CHECK(rank.step_of_state() == 5);
    }
}

TEST_CASE("who was told that there is nothing to go back to saves from the beginning", "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(1, 2, 1, "", 0));
    const auto asks = GENERATE(as<std::string>(), "restart", "test");
    CAPTURE(asks);
    auto ranks = start_ranks(c, 1, {1, 2});
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    CHECK(ranks[0].ask("save 5") == BCK_OK);
    CHECK(ranks[0].ask("wait 5 0 0") == BCK_OK);
    ranks[1].kill();  // before its first save
    rank_process again(c, 2, 1, 1, 2, state_bytes);
    CHECK(again.ask("restart") == not_restored(BCK_E_NOTFOUND));
    CHECK(ranks[0].ask("save 6") == BCK_E_STALE);
    CHECK(ranks[0].ask(asks) == BCK_E_NOTFOUND);
    CHECK(ranks[0].ask("wait 5 0 0") == BCK_E_TIMEOUT);  // what was sealed is of a history that is over
    CHECK(ranks[0].ask("stat") == found_step{.code = BCK_E_NOTFOUND, .step = 0});
    CHECK(ranks[0].ask("save 5") == BCK_OK);
    CHECK(again.ask("save 5") == BCK_OK);
    CHECK(ranks[0].ask("wait 5 2 5000") == BCK_OK);
}

TEST_CASE("a step that was saved with wrong arguments may be saved yet", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 2, "", 0));
    auto ranks = start_ranks(c, 1, {1}, 2);
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    CHECK(ranks[1].ask("save 2") == BCK_OK);
    CHECK(ranks[0].ask("given 2 w:10 w:10") == BCK_E_INVALID);  // one name twice
    CHECK(ranks[0].ask("given 2 w:10") == BCK_OK);
    all_are(ask_all(ranks, "wait 2 1 5000"), BCK_OK);
    CHECK(c.counter(1, 1, "skipped") == 0);
}

TEST_CASE("a daemon that is being started again is waited for by those who ask for their state", "[ckptd]") {
    cluster c({1, "", {"--keeper"}});
    c.open(c.request(1, 1, 1, "", 0));
    rank_here rank(c.socket(1));
    REQUIRE(rank.init() == BCK_OK);
    REQUIRE(rank.save(5) == BCK_OK);
    REQUIRE(bck_wait(5, BCK_MEMORY, 5000) == BCK_OK);
    bck_finalize(0);
    c.new_step(1, 1, {1});
    const auto is_away = [&] {
        ::kill(c.pid(1), SIGSTOP);  // the keeper
        const auto daemon = daemon_of(c);
        REQUIRE(daemon > 0);
        ::kill(daemon, SIGKILL);
        REQUIRE(eventually([&] { return daemon_of(c) < 0; }));
    };
    const bool before_init = GENERATE(true, false);
    CAPTURE(before_init);
    if (before_init) is_away();
    std::thread comes;
    const auto comes_back = [&] {
        comes = std::thread([&] {
            pass(300ms);
            ::kill(c.pid(1), SIGCONT);
        });
    };
    if (before_init) comes_back();
    CHECK(rank.init() == BCK_OK);
    if (!before_init) {
        is_away();  // connected, and nothing is attached yet
        comes_back();
    }
    rank.state.assign(bytes, 0);
    std::uint64_t step = 0;
    CHECK(bck_restart(&step, nullptr) == BCK_OK);
    comes.join();
    CHECK(step == 5);
    CHECK(rank.step_of_state() == 5);
    CHECK(rank.save(6) == BCK_OK);
}

TEST_CASE("who asked for its state and has no answer saves nothing until it has one", "[ckptd]") {
    cluster c({1, "", {}});
    static std::uint64_t job = 100;  // of each run another one: this process has not begun in it
    c.open(c.request(++job, 1, 1, "", 0));
    REQUIRE(in_a_child([&] {
                rank_here rank(c.socket(1));
                if (rank.init(job) != BCK_OK || rank.save(5) != BCK_OK) return 1;
                return bck_wait(5, BCK_MEMORY, 5000) == BCK_OK ? 0 : 2;
            }) == 0);
    c.new_step(job, 1, {1});
    // A name under which the daemon can be found later.
    const auto later = c.dir() + "/later.sock";
    rank_here rank(later);
    std::uint64_t step = 0;
    const auto asks = GENERATE(as<std::string>(), "restart", "restart_query", "stat");
    CAPTURE(asks);
    CHECK(rank.init(job) == BCK_E_NODAEMON);
    bck_contents* contents = nullptr;
    CHECK((asks == "restart"         ? bck_restart(&step, nullptr)
           : asks == "restart_query" ? bck_restart_query(&step)
                                     : bck_stat(&contents)) == BCK_E_NODAEMON);
    REQUIRE(::symlink(c.socket(1).c_str(), later.c_str()) == 0);
    SECTION("as bck_init brings the connection") {
        CHECK(rank.init(job) == BCK_OK);
        CHECK(rank.save(1) == BCK_E_STALE);
        CHECK(std::string(bck_error()).find("bck_restart") != std::string::npos);
    }
    SECTION("as bck_restart looks for the daemon at once") {
        CHECK(bck_restart_query(&step) == BCK_OK);
        CHECK(step == 5);
        CHECK(rank.save(1) == BCK_E_STALE);
    }
    CHECK(bck_restart(&step, nullptr) == BCK_OK);
    CHECK(step == 5);
    CHECK(rank.step_of_state() == 5);
    CHECK(rank.save(6) == BCK_OK);
    CHECK(bck_wait(6, BCK_MEMORY, 5000) == BCK_OK);
}

TEST_CASE("a daemon that takes longer than a minute to bring all to storage: no word that it is gone",
          "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 1, "", 0));
    rank_here rank(c.socket(1));
    REQUIRE(rank.init() == BCK_OK);
    REQUIRE(rank.save(1) == BCK_OK);
    c.kill(1, SIGSTOP);
    std::atomic<bool> over{false};
    int code = BCK_OK;
    std::string why;
    std::thread finalizes([&] {
        code = bck_finalize(1);
        why = bck_error();
        over = true;
    });
    pass(1s);  // it waits for the answer
    idle_time().advance(62s);
    pass(1s);
    CHECK_FALSE(over);
    pass(2s);
    finalizes.join();
    CHECK(code == BCK_E_TIMEOUT);
    CHECK(why.find("storage") != std::string::npos);
    c.kill(1, SIGCONT);
}

}  // namespace test_ckptd_client
