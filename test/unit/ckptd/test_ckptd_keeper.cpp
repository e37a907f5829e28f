// SPDX-License-Identifier: BSD-3-Clause
//
// Daemons that are killed under running jobs, and that their keepers start again.
#include <csignal>
#include <cstring>
#include <fstream>
#include <future>
#include <random>
#include <thread>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/keeper/ledger.hpp"
#include "cluster.hpp"
#include "common/file.hpp"
#include "ends_at.hpp"

namespace test_ckptd_keeper {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;
namespace keeper = banyan::ckpt::keeper;

namespace {

pid_t daemon_of(const cluster& c, int node) {
    const auto now = c.status(node);
    return now.is_object() ? now["pid"].get<pid_t>() : -1;
}

// Below its keeper.
void kill_daemon(const cluster& c, int node) {
    const auto pid = daemon_of(c, node);
    REQUIRE(pid > 0);
    REQUIRE(pid != c.pid(node));
    ::kill(pid, SIGKILL);
}

bool is_back(const cluster& c, int node, pid_t before) {
    return eventually([&] {
        const auto now = daemon_of(c, node);
        return now > 0 && now != before;
    });
}

bool is_stopped(pid_t pid) {
    const auto stat = banyan::read_file(fmt::format("/proc/{}/stat", pid), 1000);
    return stat && stat->find(") T ") != std::string::npos;
}

std::size_t how_often(const std::string& text, const std::string& what) {
    std::size_t count = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
    return count;
}

}  // namespace

TEST_CASE("a daemon that is killed costs no step, and no process notices", "[ckptd]") {
    cluster c({2, "log_level = \"debug\"\n", {"--keeper"}});
    c.open(c.request(1, 2, 2, "", 0));
    auto ranks = start_ranks(c, 1, {1, 2}, 2);
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    all_are(ask_all(ranks, "wait 1 2 5000"), BCK_OK);
    for (const int node : {1, 2}) {
        const auto before = daemon_of(c, node);
        kill_daemon(c, node);
        const auto step = std::to_string(10 * node);
        all_are(ask_all(ranks, "save " + step), BCK_OK);
        all_are(ask_all(ranks, "wait " + step + " 2 10000"), BCK_OK);
        CHECK(is_back(c, node, before));
        CHECK(c.log(node).find(
                  "started again by the keeper, the daemon before ended by signal 9: 1 sessions") !=
              std::string::npos);
    }
    for (const int node : {1, 2}) kill_daemon(c, node);
    for (const char* step : {"30", "31", "32", "33"}) {
        all_are(ask_all(ranks, std::string("save ") + step), BCK_OK);
        all_are(ask_all(ranks, std::string("wait ") + step + " 2 10000"), BCK_OK);
    }
    CHECK(c.printed("checkpoints are off") == 0);
    // Nothing has begun anew: the processes train on.
    for (auto& r : ranks) r.kill();
    ranks.clear();
    c.new_step(1, 1, {1, 2});
    auto again = start_ranks(c, 1, {1, 2}, 2);
    all_are(ask_all(again, "restart"), restored_state{.step = 33, .source = BCK_FROM_LOCAL});
}

TEST_CASE("a word that the daemon has not read when it is killed keeps no rank from the next one",
          "[ckptd]") {
    const auto what = GENERATE(as<std::string>(), "finalize 1", "restart", "grow 100000");
    CAPTURE(what);
    cluster c({1, "", {"--keeper"}});
    c.open(c.request(1, 1, 1, "", 0));
    auto ranks = start_ranks(c, 1, {1});
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    all_are(ask_all(ranks, "wait 1 1 5000"), BCK_OK);
    const auto before = daemon_of(c, 1);
    REQUIRE(::kill(before, SIGSTOP) == 0);
    REQUIRE(eventually([&] { return is_stopped(before); }));
    all_are(ask_all(ranks, "save 2"), BCK_OK);
    REQUIRE(::kill(before, SIGKILL) == 0);
    REQUIRE(is_back(c, 1, before));
    if (what == "restart")
        all_are(ask_all(ranks, what), restored_state{.step = 2, .source = BCK_FROM_LOCAL});
    else
        all_are(ask_all(ranks, what), BCK_OK);
    if (what.starts_with("grow")) all_are(ask_all(ranks, "save 3"), BCK_OK);
    CHECK(c.printed("checkpoints are off") == 0);
}

TEST_CASE("what was acknowledged is there after both daemons of a job were killed at once", "[ckptd]") {
    cluster c({2, "", {"--keeper"}});
    c.open(c.request(2, 2, 1, "", 0));
    auto ranks = start_ranks(c, 2, {1, 2});
    for (int step = 1; step <= 3; ++step) all_are(ask_all(ranks, "save " + std::to_string(step)), BCK_OK);
    all_are(ask_all(ranks, "wait 3 2 5000"), BCK_OK);
    for (auto& r : ranks) r.kill();
    kill_daemon(c, 1);
    kill_daemon(c, 2);
    REQUIRE(eventually([&] { return daemon_of(c, 1) > 0 && daemon_of(c, 2) > 0; }));
    SECTION("in a new step") {
        c.new_step(2, 1, {1, 2});
        ranks = start_ranks(c, 2, {1, 2});
        all_are(ask_all(ranks, "restart"), restored_state{.step = 3, .source = BCK_FROM_LOCAL});
    }
    SECTION("in the same step, by processes that are started anew") {
        ranks = start_ranks(c, 2, {1, 2});
        all_are(ask_all(ranks, "restart"), restored_state{.step = 3, .source = BCK_FROM_LOCAL});
    }
    SECTION("after a node is lost, too") {
        c.kill(2, SIGKILL);
        REQUIRE(c.start(2));
        auto r = c.request(2, 2, 1, "", 0);
        r.restart = 1;
        c.open(r);
        ranks = start_ranks(c, 2, {1, 2});
        CHECK(ask_all(ranks, "restart") == std::vector<restored_state>{{.step = 3, .source = BCK_FROM_LOCAL},
                                                                       {.step = 3, .source = BCK_FROM_PEER}});
    }
    all_are(ask_all(ranks, "save 4"), BCK_OK);
    all_are(ask_all(ranks, "wait 4 2 5000"), BCK_OK);
}

TEST_CASE("a job's end reaches a daemon that is away when it comes", "[ckptd]") {
    cluster c({1, "", {"--keeper"}});
    c.open(c.request(3, 1, 1, "", 0));
    auto ranks = start_ranks(c, 3, {1});
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    all_are(ask_all(ranks, "wait 1 1 5000"), BCK_OK);
    ::kill(c.pid(1), SIGSTOP);  // the keeper: it starts none before it goes on
    kill_daemon(c, 1);
    REQUIRE(eventually([&] { return daemon_of(c, 1) < 0; }));
    const auto state = [&] {
        const auto s = c.session(1, 3);
        return s.is_null() ? std::string() : s["state"].get<std::string>();
    };
    SECTION("and comes back meanwhile") {
        auto ended =
            std::async(std::launch::async, [&] { return ckpt::session_detach(c.socket(1), 3, 30s); });
        ::kill(c.pid(1), SIGCONT);
        CHECK(ended.get());
        CHECK(state() == "detached");
    }
    SECTION("and comes back later") {
        CHECK_FALSE(ckpt::session_detach(c.socket(1), 3, 100ms));
        ::kill(c.pid(1), SIGCONT);
        CHECK(eventually([&] { return state() == "detached"; }));
    }
    SECTION("and the job is started again before that") {
        CHECK_FALSE(ckpt::session_detach(c.socket(1), 3, 100ms));
        auto r = c.request(3, 1, 1, "", 0);
        r.restart = 1;
        CHECK_FALSE(ckpt::session_open(c.socket(1), r, 100ms));
        ::kill(c.pid(1), SIGCONT);
        REQUIRE(eventually([&] { return daemon_of(c, 1) > 0; }));
        c.open(r);
        CHECK(state() != "detached");
    }
}

TEST_CASE("daemons that are killed again and again lose nothing", "[ckptd]") {
    cluster c({3, "", {"--keeper"}});
    c.open(c.request(3, 3, 1, "", 0));
    auto ranks = start_ranks(c, 3, {1, 2, 3});
    std::mt19937 random(7);
    std::uint64_t replicated = 0, step = 0;
    for (int round = 0; round < 12; ++round) {
        const int node = 1 + static_cast<int>(random() % 3);
        for (int i = 0; i < 3; ++i) {
            ++step;
            for (auto& r : ranks) r.say("save " + std::to_string(step));
            if (i == 1) {
                // Of the kernel's time: anywhere in what the daemon does, which takes none of the other.
                ::usleep(random() % 20'000);
                if (const auto pid = daemon_of(c, node); pid > 0) ::kill(pid, SIGKILL);
            }
            for (auto& r : ranks) {
                const auto code = r.hear();
                CHECK((code == BCK_OK || code == BCK_E_BUSY));  // the save was skipped: no buffer was free
            }
        }
        const auto reached = ask_all(ranks, fmt::format("wait {} 2 3000", step));
        if (reached == std::vector<int>(3, BCK_OK)) replicated = step;
        REQUIRE(eventually([&] { return daemon_of(c, node) > 0; }));
        // More than an end so soon after the start would be taken for its own fault.
        if (round % 2 == 1) pass(3500ms);
    }
    CHECK(replicated > 0);
    for (auto& r : ranks) r.kill();
    ranks.clear();
    c.new_step(3, 1, {1, 2, 3});
    auto again = start_ranks(c, 3, {1, 2, 3});
    const auto got = ask_all(again, "restart");
    for (const auto& one : got) CHECK(one == got[0]);
    CHECK(got[0] == BCK_OK);
    CHECK(got[0].restored().step >= replicated);
}

TEST_CASE("a daemon that is killed while it takes over leaves all to the next one", "[ckptd]") {
    const ends_at ends;
    cluster::options o{2, "", {"--keeper"}};
    o.before[1] = ends.before();
    cluster c(std::move(o));
    c.open(c.request(8, 2, 1, "", 0));
    auto ranks = start_ranks(c, 8, {1, 2}, 1, 300'000);
    int step = 1;
    const auto save = [&] {
        all_are(ask_all(ranks, fmt::format("save {}", step)), BCK_OK);
        all_are(ask_all(ranks, fmt::format("wait {} 2 10000", step)), BCK_OK);
    };
    save();
    // Before each of the first of its calls, and some of those that follow when it serves again.
    const std::vector<int> calls{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30};
    for (const int call : calls) {
        INFO("call " << call);
        // The one that goes makes calls, too, and is to make none of these.
        const auto before = daemon_of(c, 1);
        REQUIRE(before > 0);
        ::kill(before, SIGSTOP);
        REQUIRE(eventually([&] { return is_stopped(before); }));
        ends.call("takeover", call, SIGKILL);
        // An end on request does not count as one that came early: see keeper::judge().
        c.kill(1, SIGUSR1);
        // What is asked are calls of a daemon that has got further than that.
        REQUIRE(eventually([&] { return ends.has_come("takeover") || (daemon_of(c, 1), false); }));
        REQUIRE(eventually([&] { return daemon_of(c, 1) > 0; }));
        CHECK(c.session(1, 8)["committed"]["step"] == step);
        ++step;
        save();
    }
    CHECK(how_often(c.log(1), "ended by signal 9: 1 sessions") == calls.size());
    // Those that were killed before they had taken over have said nothing.
    CHECK(how_often(c.log(1), "ended by replaced") < calls.size());
    for (auto& r : ranks) r.kill();
    ranks.clear();
    c.new_step(8, 1, {1, 2});
    auto again = start_ranks(c, 8, {1, 2}, 1, 300'000);
    all_are(ask_all(again, "restart"),
            restored_state{.step = static_cast<std::uint64_t>(step), .source = BCK_FROM_LOCAL});
}

TEST_CASE("memory that has grown is there after the daemon was killed", "[ckptd]") {
    cluster c({2, "", {"--keeper"}});
    c.open(c.request(7, 2, 1, "", 0));
    auto ranks = start_ranks(c, 7, {1, 2});
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    all_are(ask_all(ranks, "wait 1 2 5000"), BCK_OK);
    all_are(ask_all(ranks, "grow 3000000"), BCK_OK);
    const auto kill_both = [&] {
        for (const int node : {1, 2}) {
            const auto before = daemon_of(c, node);
            kill_daemon(c, node);
            REQUIRE(is_back(c, node, before));
        }
    };
    auto newest = restored_state{.step = 1, .source = BCK_FROM_LOCAL};
    SECTION("with steps of both layouts") {
        for (int step = 2; step <= 5; ++step) all_are(ask_all(ranks, "save " + std::to_string(step)), BCK_OK);
        all_are(ask_all(ranks, "wait 5 2 5000"), BCK_OK);
        kill_both();
        all_are(ask_all(ranks, "save 6"), BCK_OK);
        all_are(ask_all(ranks, "wait 6 2 5000"), BCK_OK);
        newest = restored_state{.step = 6, .source = BCK_FROM_LOCAL};
    }
    SECTION("with a step from before alone") {
        CHECK(ranks[0].ask("save 2") == BCK_OK);  // grows, and the other one never saves it
        kill_both();
    }
    for (auto& r : ranks) r.kill();
    kill_both();
    c.new_step(7, 1, {1, 2});
    auto again = start_ranks(c, 7, {1, 2});
    all_are(ask_all(again, "restart"), newest);
    all_are(ask_all(again, "save 7"), BCK_OK);
    all_are(ask_all(again, "wait 7 2 5000"), BCK_OK);
}

TEST_CASE("steps in storage go on after the daemon that leads was killed", "[ckptd]") {
    cluster c({2, "", {"--keeper"}});
    const auto dir = c.dir() + "/storage";
    REQUIRE(::mkdir(dir.c_str(), 0700) == 0);
    c.open(c.request(4, 2, 1, dir, 1));
    auto ranks = start_ranks(c, 4, {1, 2});
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    all_are(ask_all(ranks, "wait 1 3 10000"), BCK_OK);
    kill_daemon(c, 1);
    all_are(ask_all(ranks, "save 2"), BCK_OK);
    all_are(ask_all(ranks, "wait 2 3 20000"), BCK_OK);
}

TEST_CASE("a daemon is replaced on request", "[ckptd]") {
    cluster c({1, "", {"--keeper"}});
    c.open(c.request(5, 1, 1, "", 0));
    auto ranks = start_ranks(c, 5, {1});
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    all_are(ask_all(ranks, "wait 1 1 5000"), BCK_OK);
    for (int i = 0; i < 5; ++i) {  // as often as one likes
        const auto before = daemon_of(c, 1);
        c.kill(1, SIGUSR1);
        CHECK(is_back(c, 1, before));
        CHECK(c.session(1, 5)["committed"]["step"] == 1);
    }
    all_are(ask_all(ranks, "save 2"), BCK_OK);
    all_are(ask_all(ranks, "wait 2 1 5000"), BCK_OK);
}

TEST_CASE("a daemon without its keeper ends", "[ckptd]") {
    cluster c({1, "", {"--keeper"}});
    const auto daemon = daemon_of(c, 1);
    c.kill(1, SIGKILL);
    CHECK(eventually([&] { return ::kill(daemon, 0) != 0; }));
}

TEST_CASE("a daemon that always dies soon begins with nothing, and says so", "[ckptd]") {
    cluster c({1, "", {"--keeper"}});
    c.open(c.request(6, 1, 1, "", 0));
    auto ranks = start_ranks(c, 6, {1});
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    all_are(ask_all(ranks, "wait 1 1 5000"), BCK_OK);
    const auto is_given_up = [&] {
        return c.log(1).find("what was in memory is given up") != std::string::npos;
    };
    // Three in a row, each within three seconds of its start.
    for (int i = 0; i < 3; ++i) {
        CHECK_FALSE(is_given_up());
        const auto before = daemon_of(c, 1);
        kill_daemon(c, 1);
        REQUIRE(is_back(c, 1, before));
    }
    CHECK(is_given_up());
    CHECK(c.status(1)["sessions"].empty());
    CHECK(c.status(1)["memory_used"] == 0);
}

TEST_CASE("a daemon that cannot start leaves all to the one that can, and its place to nobody", "[ckptd]") {
    cluster c({1, "", {"--keeper"}});
    c.open(c.request(9, 1, 1, "", 0));
    auto ranks = start_ranks(c, 9, {1});
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    all_are(ask_all(ranks, "wait 1 1 5000"), BCK_OK);
    const auto config = c.dir() + "/banyan.conf";
    const auto right = *banyan::read_file(config, 1 << 16);
    std::ofstream(config, std::ios::app) << "sokcet = \"/nowhere\"\n";
    const auto before = daemon_of(c, 1);
    kill_daemon(c, 1);
    // More often than one that dies of what it is given may.
    REQUIRE(eventually([&] { return how_often(c.log(1), "sokcet") >= 7; }));
    for (auto& r : ranks) r.kill();
    ranks.clear();
    {
        const banyan::unique_fd lock(::open((c.socket(1) + ".lock").c_str(), O_RDWR | O_CLOEXEC));
        REQUIRE(lock);
        CHECK(::flock(lock.get(), LOCK_EX | LOCK_NB) != 0);
    }
    std::ofstream(config) << right;
    REQUIRE(is_back(c, 1, before));
    CHECK(c.log(1).find("the daemon before ended by exit status 2: 1 sessions") != std::string::npos);
    c.new_step(9, 1, {1});
    auto again = start_ranks(c, 9, {1});
    all_are(ask_all(again, "restart"), restored_state{.step = 1, .source = BCK_FROM_LOCAL});
    // And is replaced, killed and ended as before.
    const auto now = daemon_of(c, 1);
    c.kill(1, SIGUSR1);
    CHECK(is_back(c, 1, now));
    all_are(ask_all(again, "save 2"), BCK_OK);
    all_are(ask_all(again, "wait 2 1 5000"), BCK_OK);
}

TEST_CASE("a keeper whose daemon cannot start ends when it is told to", "[ckptd]") {
    cluster c({1, "", {"--keeper"}});
    c.open(c.request(9, 1, 1, "", 0));
    auto ranks = start_ranks(c, 9, {1});
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    std::ofstream(c.dir() + "/banyan.conf", std::ios::app) << "sokcet = \"/nowhere\"\n";
    kill_daemon(c, 1);
    REQUIRE(eventually([&] { return how_often(c.log(1), "sokcet") >= 5; }));
    const auto from = banyan::clock::now();
    c.kill(1, SIGTERM);  // and waits for its end
    CHECK(banyan::clock::now() < from + 3s);
}

TEST_CASE("a ledger is the text before or the new one, whenever its writer is killed", "[ckptd]") {
    const auto custody = std::make_shared<keeper::custody>(banyan::unique_fd());
    keeper::ledger l(custody);
    CHECK_FALSE(l.read());
    std::vector<std::byte> text;
    for (std::size_t size : {0ul, 1ul, 1000ul, 40'000ul, 300'000ul, 5ul}) {
        text.assign(size, static_cast<std::byte>(size % 251));
        REQUIRE(l.write(text));
        CHECK(l.read() == text);
    }
}

TEST_CASE("a ledger whose writer was killed is whole when the next one is killed, too", "[ckptd]") {
    struct head {
        std::uint64_t sequence, bytes;
        std::uint32_t crc, magic;
    };
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    const banyan::unique_fd theirs(ends[1]);
    const auto custody = std::make_shared<keeper::custody>(banyan::unique_fd(ends[0]));
    const auto text = [](const char* what) {
        const auto bytes = std::as_bytes(std::span(what, 4));
        return std::vector(bytes.begin(), bytes.end());
    };
    keeper::ledger first(custody);
    REQUIRE(first.write(text("one ")));
    REQUIRE(first.write(text("two ")));
    auto kept = keeper::receive_record(theirs.get());
    REQUIRE(kept);
    struct stat st {};
    REQUIRE(::fstat(kept->fd.get(), &st) == 0);
    const auto bytes = static_cast<std::size_t>(st.st_size);
    const banyan::mapping map(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kept->fd.get(), 0),
                              bytes);
    const auto half = [&](std::size_t i) { return map.data() + i * bytes / 2; };
    const auto is_of = [&](std::size_t i, const char* what) {
        return std::memcmp(half(i) + sizeof(head), what, 4) == 0;
    };
    const auto tear = [&](std::size_t i, std::uint64_t sequence) {
        auto& h = *reinterpret_cast<head*>(half(i));
        h.magic = 0;
        h.sequence = sequence;
    };
    const std::size_t older = is_of(0, "one ") ? 0 : 1;
    REQUIRE(is_of(1 - older, "two "));
    tear(older, 3);  // killed between the sequence and the end
    const auto next =
        keeper::ledger::adopt(custody, {keeper::contents::ledger, kept->what.number, std::move(kept->fd)});
    REQUIRE(next);
    CHECK((*next)->read() == text("two "));
    REQUIRE((*next)->write(text("four")));
    CHECK((*next)->read() == text("four"));
    tear(is_of(0, "four") ? 0 : 1, 4);
    CHECK((*next)->read() == text("two "));
}

TEST_CASE("what a keeper has no room for is said later, and in its order", "[ckptd]") {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0);
    const banyan::unique_fd theirs(ends[1]);
    keeper::custody mine{banyan::unique_fd(ends[0])};
    constexpr std::uint64_t many = 700;  // a socket's buffer holds some 280
    for (std::uint64_t i = 1; i <= many; ++i) REQUIRE(mine.hold(keeper::contents::shards, STDIN_FILENO) == i);
    mine.drop(1);
    std::uint64_t held = 0;
    for (;;) {
        const auto got = keeper::receive_record(theirs.get());
        if (!got) {
            mine.catch_up();
            continue;
        }
        if (got->what.type == keeper::record_type::drop) break;
        REQUIRE(got->what.number == ++held);
        REQUIRE(got->fd);
    }
    CHECK(held == many);
}

TEST_CASE("a keeper that is stopped holds nobody up, and has all when it goes on", "[ckptd]") {
    cluster c({2, "", {"--keeper"}});
    c.open(c.request(5, 2, 2, "", 0));
    ::kill(c.pid(1), SIGSTOP);
    auto ranks = start_ranks(c, 5, {1, 2}, 2);
    for (const char* step : {"1", "2", "3", "4", "5"}) {
        all_are(ask_all(ranks, std::string("save ") + step), BCK_OK);
        all_are(ask_all(ranks, std::string("wait ") + step + " 2 5000"), BCK_OK);
    }
    const auto before = daemon_of(c, 1);
    ::kill(c.pid(1), SIGCONT);
    kill_daemon(c, 1);
    CHECK(is_back(c, 1, before));
    all_are(ask_all(ranks, "save 6"), BCK_OK);
    all_are(ask_all(ranks, "wait 6 2 10000"), BCK_OK);
    for (auto& r : ranks) r.kill();
    ranks.clear();
    c.new_step(5, 1, {1, 2});
    auto again = start_ranks(c, 5, {1, 2}, 2);
    all_are(ask_all(again, "restart"), restored_state{.step = 6, .source = BCK_FROM_LOCAL});
}

}  // namespace test_ckptd_keeper
