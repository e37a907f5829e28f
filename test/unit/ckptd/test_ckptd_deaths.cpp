// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks that die, and words that a node is about to fail: what is complete goes to storage at once, and once.
#include <algorithm>
#include <array>
#include <csignal>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.hpp"
#include "common/wire.hpp"
#include "gate.hpp"
#include "test/built.hpp"

namespace test_ckptd_deaths {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;

namespace {

constexpr std::uint64_t rarely = 1000;  // steps between flushes: none is due in these tests
constexpr std::size_t small = 100'000;

std::uint64_t deaths(const cluster& c, int node, std::uint64_t job = 7) {
    return c.counter(node, job, "deaths").get<std::uint64_t>();
}
std::uint64_t flushes(const cluster& c, int leader, std::uint64_t job = 7) {
    return c.counter(leader, job, "flushes").get<std::uint64_t>();
}

void save(std::vector<rank_process>& ranks, int step, int level = 2) {
    all_are(ask_all(ranks, "save " + std::to_string(step)), BCK_OK);
    all_are(ask_all(ranks, "wait " + std::to_string(step) + " " + std::to_string(level) + " 9000"), BCK_OK);
}

std::vector<rank_process> begin(const cluster& c, const std::vector<int>& nodes, int per_node,
                                std::uint64_t flush = rarely) {
    c.open(c.request(7, static_cast<int>(nodes.size()), per_node, c.dir() + "/store", flush));
    c.new_step(7, 0, nodes);
    return start_ranks(c, 7, nodes, per_node, small);
}

bool nobody_is_attached(const cluster& c, int node) {
    auto session = c.session(node, 7);
    for (const auto& r : session["ranks"])
        if (r["attached"] == true) return false;
    return true;
}

}  // namespace

TEST_CASE("the death of one rank brings the newest complete step to storage", "[ckptd]") {
    cluster c({2, "", {}});
    auto ranks = begin(c, {1, 2}, 2);
    for (int step = 1; step <= 3; ++step) save(ranks, step);
    // Not complete: one has not saved it.
    for (std::size_t i = 0; i < 3; ++i) CHECK(ranks[i].ask("save 4") == BCK_OK);
    REQUIRE_FALSE(is_stored(c, 3));
    ranks[3].kill();
    CHECK(eventually([&] { return is_stored(c, 3); }));
    CHECK(eventually([&] { return deaths(c, 2) == 1; }));
    CHECK(deaths(c, 1) == 0);
    CHECK(eventually([&] { return flushes(c, 1) == 1; }));
    CHECK(c.session(1, 7)["committed"]["step"] == 3);
    // The others live, and the step that they all come to then is complete as ever.
    ranks.pop_back();
    ranks.emplace_back(c, 2, 7, 3, 4, small);
    all_are(ask_all(ranks, "restart"), restored_state{.step = 3, .source = BCK_FROM_LOCAL});
    save(ranks, 5);
}

TEST_CASE("a step that is killed with all its ranks is one failure", "[ckptd]") {
    cluster c({2, "", {}});
    auto ranks = begin(c, {1, 2}, 8);
    save(ranks, 1);
    for (auto& r : ranks) ::kill(r.pid(), SIGKILL);
    CHECK(eventually([&] { return is_stored(c, 1) && deaths(c, 1) == 8 && deaths(c, 2) == 8; }));
    ranks.clear();
    c.new_step(7, 1, {1, 2});
    ranks = start_ranks(c, 7, {1, 2}, 8, small);
    all_are(ask_all(ranks, "restart"), restored_state{.step = 1, .source = BCK_FROM_LOCAL});
    save(ranks, 2);
    for (auto& r : ranks) ::kill(r.pid(), SIGKILL);
    CHECK(eventually([&] { return is_stored(c, 2) && deaths(c, 1) == 16 && deaths(c, 2) == 16; }));
    CHECK(eventually([&] { return flushes(c, 1) == 2; }));
    CHECK(c.counter(1, 7, "flush_failures") == 0);
}

TEST_CASE("a job that does not flush is left alone", "[ckptd]") {
    cluster c({1, "", {}});
    auto ranks = begin(c, {1}, 2, 0);
    save(ranks, 1, 1);
    ranks[0].kill();
    CHECK(eventually([&] { return deaths(c, 1) == 1; }));
    CHECK_FALSE(is_stored(c, 1));
}

TEST_CASE("who has finalized, with or without a drain, does not die", "[ckptd]") {
    cluster c({1, "", {"--keeper"}});
    auto ranks = begin(c, {1}, 4);
    save(ranks, 1, 1);
    CHECK(ranks[0].ask("finalize 0") == BCK_OK);
    ranks[0].kill();
    // In the very moment, as at the end of main.
    ranks[1].say("finalize 0");
    CHECK(ranks[1].hear() == BCK_OK);
    ranks[1].kill();
    // A daemon that is started again knows it, too.
    CHECK(ranks[2].ask("finalize 0") == BCK_OK);
    CHECK(eventually([&] { return c.session(1, 7)["ranks"][2]["attached"] == false; }));
    const auto before = c.status(1)["pid"].get<pid_t>();
    ::kill(before, SIGKILL);
    CHECK(eventually([&] {
        const auto now = c.status(1);
        return now.is_object() && now["pid"] != before;
    }));
    ranks[2].kill();
    CHECK(deaths(c, 1) == 0);
    REQUIRE_FALSE(is_stored(c, 1));
    // One that does die is the only one that is counted.
    ranks[3].kill();
    CHECK(eventually([&] { return is_stored(c, 1); }));
    CHECK(deaths(c, 1) == 1);
}

TEST_CASE("a rank's death counts though what it has forked holds its connection", "[ckptd]") {
    cluster c({1, "", {}});
    auto ranks = begin(c, {1}, 2);
    save(ranks, 1, 1);
    CHECK(ranks[0].ask("fork") == BCK_OK);
    ranks[0].kill();
    CHECK(eventually([&] { return is_stored(c, 1); }));
    CHECK(deaths(c, 1) == 1);
    CHECK(c.session(1, 7)["ranks"][0]["attached"] == false);
    // And its place is free.
    ranks[1].kill();
    c.new_step(7, 1, {1});
    auto again = start_ranks(c, 7, {1}, 2, small);
    all_are(ask_all(again, "restart"), restored_state{.step = 1, .source = BCK_FROM_LOCAL});
}

TEST_CASE("what is left of an older launch dies unnoticed", "[ckptd]") {
    cluster c({1, "", {}});
    auto old = begin(c, {1}, 2);
    save(old, 1, 1);
    CHECK(old[0].ask("hang_up") == BCK_OK);
    CHECK(old[1].ask("hang_up") == BCK_OK);
    CHECK(eventually([&] { return nobody_is_attached(c, 1); }));
    c.new_step(7, 1, {1});
    auto ranks = start_ranks(c, 7, {1}, 2, small);
    all_are(ask_all(ranks, "restart"), restored_state{.step = 1, .source = BCK_FROM_LOCAL});
    for (auto& r : old) r.kill();
    save(ranks, 2, 1);
    CHECK(deaths(c, 1) == 0);
    CHECK_FALSE(is_stored(c, 1));
    ranks[0].kill();
    CHECK(eventually([&] { return is_stored(c, 2); }));
    CHECK(deaths(c, 1) == 1);
}

TEST_CASE("after the end of the job nobody dies", "[ckptd]") {
    cluster c({1, "", {}});
    auto ranks = begin(c, {1}, 2);
    save(ranks, 1, 1);
    REQUIRE(ckpt::session_detach(c.socket(1), 7, 5s));
    for (auto& r : ranks) r.kill();
    CHECK(eventually([&] { return is_stored(c, 1) && nobody_is_attached(c, 1); }));
    CHECK(deaths(c, 1) == 0);
    CHECK(eventually([&] { return flushes(c, 1) == 1; }));
}

TEST_CASE("ranks that die while their daemon is away have died all the same", "[ckptd]") {
    cluster c({2, "", {"--keeper"}});
    auto ranks = begin(c, {1, 2}, 1);
    save(ranks, 1);
    const auto daemon = c.status(2)["pid"].get<pid_t>();
    ::kill(daemon, SIGSTOP);
    ranks[1].kill();
    ::kill(daemon, SIGKILL);
    CHECK(eventually([&] { return is_stored(c, 1); }));
    CHECK(deaths(c, 2) == 1);
    // One that lives is watched by the new daemon.
    const auto other = c.status(1)["pid"].get<pid_t>();
    ::kill(other, SIGKILL);
    CHECK(eventually([&] {
        const auto now = c.status(1);
        return now.is_object() && now["pid"] != other;
    }));
    ranks[0].kill();
    CHECK(eventually([&] { return deaths(c, 1) == 1; }));
}

TEST_CASE("a launch that begins in the middle of it does not take the step back", "[ckptd]") {
    const gate g;
    cluster c(g.on({2}, 2));
    auto ranks = begin(c, {1, 2}, 1);
    for (int step = 1; step <= 2; ++step) save(ranks, step);
    for (auto& r : ranks) r.kill();
    CHECK(eventually([&] { return deaths(c, 1) == 1 && deaths(c, 2) == 1; }));
    ranks.clear();
    c.new_step(7, 1, {1, 2});
    ranks = start_ranks(c, 7, {1, 2}, 1, small);
    all_are(ask_all(ranks, "restart"), restored_state{.step = 2, .source = BCK_FROM_LOCAL});
    REQUIRE_FALSE(is_stored(c, 2));
    g.open();
    CHECK(eventually([&] { return is_stored(c, 2); }));
    CHECK(c.printed() == "");
}

TEST_CASE("a node that is about to fail brings the newest complete step to storage", "[ckptd]") {
    cluster c({2, "", {}});
    auto ranks = begin(c, {1, 2}, 1);
    save(ranks, 1);
    const auto sealed = ckpt::seal_now(c.socket(2), 0, 5s);
    REQUIRE(sealed);
    REQUIRE(sealed->size() == 1);
    CHECK(sealed->front().step == 1);
    CHECK(eventually([&] { return is_stored(c, 1); }));
    CHECK(eventually([&] { return flushes(c, 1) == 1; }));
    // Who looks at the job and asks is answered again at once; a node that goes on to say so is not.
    save(ranks, 2);
    REQUIRE(ckpt::seal_now(c.socket(2), 7, 5s));
    CHECK(eventually([&] { return is_stored(c, 2); }));
    save(ranks, 3);
    REQUIRE(ckpt::seal_now(c.socket(2), 0, 5s));
    save(ranks, 4);
    CHECK_FALSE(is_stored(c, 3));
    CHECK(eventually([&] { return flushes(c, 1) == 2; }));
}

TEST_CASE("for a node that is dead its buddy brings the step to storage", "[ckptd]") {
    const auto dead = GENERATE(1, 2, 3);  // the leader among them
    const bool ended = GENERATE(false, true);
    CAPTURE(dead, ended);
    cluster c({3, "", {}});
    auto ranks = begin(c, {1, 2, 3}, 2);
    for (int step = 1; step <= 2; ++step) save(ranks, step);
    c.kill(dead, SIGKILL);
    std::vector<int> alive;
    for (const int node : {1, 2, 3})
        if (node != dead) alive.push_back(node);
    if (ended)
        for (const int node : alive) REQUIRE(ckpt::session_detach(c.socket(node), 7, 5s));
    for (auto& r : ranks) r.kill();
    CHECK(eventually([&] { return is_stored(c, 2); }));
    CHECK(eventually([&] { return flushes(c, alive.front()) == 1; }));
    // Whoever comes next finds every rank's bytes.
    if (!ended)
        for (const int node : alive) REQUIRE(ckpt::session_detach(c.socket(node), 7, 5s));
    REQUIRE(c.start(dead));
    ranks.clear();
    c.open(c.request(8, 3, 2, c.dir() + "/store", rarely));
    c.new_step(8, 0, {1, 2, 3});
    ranks = start_ranks(c, 8, {1, 2, 3}, 2, small);
    all_are(ask_all(ranks, "restart"), restored_state{.step = 2, .source = BCK_FROM_STORAGE});
}

TEST_CASE("a buddy that is told again while it writes for a dead node does not write twice", "[ckptd]") {
    cluster::options o{3, "", {}};
    // The leader repeats its word every five seconds.
    for (const int node : {1, 3})
        o.before[node] = {"env", "LD_PRELOAD=" + banyan::testing::built("ckptd_slow_storage"),
                          "SLOW_RENAME=.buddy.tmp", "SLOW_LO=6000", "SLOW_HI=6000"};
    cluster c(o);
    auto ranks = begin(c, {1, 2, 3}, 2);
    save(ranks, 1);
    c.kill(2, SIGKILL);
    for (auto& r : ranks) r.kill();
    CHECK(eventually([&] { return is_stored(c, 1) || c.counter(1, 7, "flush_failures") != 0; }));
    CHECK(is_stored(c, 1));
    CHECK(c.counter(1, 7, "flush_failures") == 0);
}

TEST_CASE("a connection whose process has ended gets no rank", "[ckptd]") {
    namespace wire = banyan::wire;
    cluster c({1, "", {}});
    c.open(c.request(7, 1, 1, "", 0));
    const auto until = banyan::clock::now() + 10s;
    std::array<int, 2> ends{}, answer{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    REQUIRE(::pipe2(answer.data(), O_CLOEXEC) == 0);
    const pid_t parent = ::fork();
    if (parent == 0) {
        const auto connection = wire::connect_unix(c.socket(1), until);
        if (!connection || ::fork() != 0) ::_exit(0);
        char none = 0;
        ::close(ends[1]);
        (void)!::read(ends[0], &none, 1);  // until the parent is gone
        const json meta = attach_of(7, 0, 1, 1000);
        std::string said = "nothing";
        const auto type = static_cast<std::uint16_t>(ckpt::message::attach);
        if (wire::send_frame(connection->get(), type, meta, {}, until))
            if (const auto reply = wire::receive_frame(connection->get(), until)) said = reply->meta.dump();
        (void)!::write(answer[1], said.data(), said.size());
        ::_exit(0);
    }
    ::waitpid(parent, nullptr, 0);
    for (const int end : {ends[0], ends[1], answer[1]}) ::close(end);
    std::string said(4096, '\0');
    const auto n = ::read(answer[0], said.data(), said.size());
    said.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    ::close(answer[0]);
    CHECK(said.find("has ended") != std::string::npos);
    CHECK(nobody_is_attached(c, 1));
    CHECK(deaths(c, 1) == 0);
}

}  // namespace test_ckptd_deaths
