// SPDX-License-Identifier: BSD-3-Clause
//
// Jobs that end otherwise than by bck_finalize: their newest step reaches storage, and the next job, which
// has another number, begins from there.
#include <csignal>
#include <fstream>

#include <catch2/catch.hpp>
#include <unistd.h>

#include "cluster.hpp"
#include "gate.hpp"

namespace test_ckptd_ending {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;

namespace {

constexpr std::uint64_t rarely = 1000;  // steps between flushes: none is due in these tests

// Trains to `step`, and is killed there, as at a time limit.
void train_until_killed(const cluster& c, std::uint64_t job, const std::vector<int>& nodes, int step,
                        std::size_t bytes = 100'000) {
    c.open(c.request(job, static_cast<int>(nodes.size()), 1, c.dir() + "/store", rarely));
    c.new_step(job, 0, nodes);
    auto ranks = start_ranks(c, job, nodes, 1, bytes);
    for (int i = 1; i <= step; ++i) all_are(ask_all(ranks, "save " + std::to_string(i)), BCK_OK);
    all_are(ask_all(ranks, "wait " + std::to_string(step) + (nodes.size() > 1 ? " 2" : " 1") + " 9000"),
            BCK_OK);
    REQUIRE_FALSE(is_stored(c, step));
    for (auto& r : ranks) r.kill();
}

void leave(const cluster& c, std::uint64_t job, const std::vector<int>& nodes) {
    for (const int node : nodes) REQUIRE(ckpt::session_detach(c.socket(node), job, 5s));
}

std::vector<rank_process> next_job(const cluster& c, std::uint64_t job, const std::vector<int>& nodes,
                                   std::size_t bytes = 100'000) {
    c.open(c.request(job, static_cast<int>(nodes.size()), 1, c.dir() + "/store", rarely));
    c.new_step(job, 0, nodes);
    return start_ranks(c, job, nodes, 1, bytes);
}

}  // namespace

TEST_CASE("a job that ends leaves its newest step in storage", "[ckptd]") {
    cluster c({2, "", {}});
    train_until_killed(c, 7, {1, 2}, 3);
    leave(c, 7, {1, 2});
    CHECK(eventually([&] { return is_stored(c, 3); }));
    auto ranks = next_job(c, 8, {1, 2});
    all_are(ask_all(ranks, "restart"), restored_state{.step = 3, .source = BCK_FROM_STORAGE});
    all_are(ask_all(ranks, "save 4"), BCK_OK);
    all_are(ask_all(ranks, "wait 4 2 9000"), BCK_OK);
    CHECK(c.printed() == "");
}

TEST_CASE("ranks that cannot drain hear of it, and their step is kept for a requeue", "[ckptd]") {
    const int count = GENERATE(1, 2);
    const auto nodes = count == 1 ? std::vector<int>{1} : std::vector<int>{1, 2};
    cluster c({count, "", {}});
    const auto store = c.dir() + "/store";
    const auto start = [&](std::uint32_t restart) {
        auto r = c.request(7, count, 1, store, rarely);
        r.restart = restart;
        c.open(r);
        c.new_step(7, 0, nodes);
        return start_ranks(c, 7, nodes, 1, 100'000);
    };
    {
        auto ranks = start(0);
        for (int i = 1; i <= 3; ++i) all_are(ask_all(ranks, "save " + std::to_string(i)), BCK_OK);
        all_are(ask_all(ranks, std::string("wait 3 ") + (count > 1 ? "2" : "1") + " 9000"), BCK_OK);
        // Storage fails from now on.
        if (std::filesystem::exists(store)) std::filesystem::rename(store, store + ".away");
        std::ofstream{store};
        all_are(ask_all(ranks, "finalize 1"), BCK_E_TIMEOUT);
        const auto why = ranks[0].ask("error");
        INFO(why);
        CHECK(why.find("step 3 is in memory alone") != std::string::npos);
        CHECK(why.find(store) != std::string::npos);
    }
    leave(c, 7, nodes);
    for (const int node : nodes) CHECK(c.session(node, 7)["committed"]["step"] == 3);
    auto ranks = start(1);
    // Storage that cannot be looked at is waited for.
    for (auto& r : ranks) r.say("restart");
    std::filesystem::remove(store);
    for (auto& r : ranks) CHECK(r.hear() == restored_state{.step = 3, .source = BCK_FROM_LOCAL});
    // What it begins with goes to storage now.
    all_are(ask_all(ranks, "finalize 1"), BCK_OK);
    CHECK(is_stored(c, 3));
    leave(c, 7, nodes);
    for (const int node : nodes) CHECK(c.session(node, 7).is_null());
}

TEST_CASE("the next job waits for what the one before still writes", "[ckptd]") {
    const gate g;
    cluster c(g.on({1, 2}, 2));
    train_until_killed(c, 7, {1, 2}, 3);
    leave(c, 7, {1, 2});
    auto ranks = next_job(c, 8, {1, 2});
    for (auto& r : ranks) r.say("restart");
    // It sees the other one's beat change, and does not take that for a job that runs.
    CHECK(eventually([&] {
        std::string first;
        std::ifstream file(c.dir() + "/store/OWNER.1");
        std::getline(file, first);
        const auto owner = json::parse(first, nullptr, false);
        return owner.is_object() && owner["ending"] == true && owner["beat"] >= 3;
    }));
    CHECK(c.session(1, 7)["counters"]["flushes"] == 0);
    g.open();
    for (auto& r : ranks) {
        const auto said = r.hear();
        INFO((said == restored_state{.step = 3, .source = BCK_FROM_STORAGE} ? answer() : r.ask("error")));
        CHECK(said == restored_state{.step = 3, .source = BCK_FROM_STORAGE});
    }
    CHECK(is_stored(c, 3));
}

TEST_CASE("memory goes to the next job when the newest step is in storage", "[ckptd]") {
    const gate g;
    constexpr std::size_t bytes = 5'000'000;
    cluster c(g.on({1}, 1, "memory_limit = \"24M\"\n"));
    train_until_killed(c, 7, {1}, 2, bytes);
    leave(c, 7, {1});
    CHECK(eventually([&] { return c.session(1, 7)["state"] == "ending"; }));
    auto r = c.request(8, 1, 1, "", 0);
    c.open(r);
    c.new_step(8, 0, {1});
    auto ranks = start_ranks(c, 8, {1}, 1, bytes);
    ranks[0].say("save 1");  // attaches
    CHECK_FALSE(within(1s, [&] { return c.session(1, 7).is_null(); }));
    g.open();
    CHECK(ranks[0].hear() == BCK_OK);
    INFO(ranks[0].ask("error"));
    CHECK(is_stored(c, 2));
    CHECK(c.session(1, 7).is_null());
}

TEST_CASE("a node that is dead does not hold the directory for the job", "[ckptd]") {
    cluster c({3, "", {}});
    train_until_killed(c, 7, {1, 2}, 3);
    c.kill(2, SIGKILL);
    leave(c, 7, {1});
    auto r = c.request(8, 2, 1, c.dir() + "/store", rarely);
    r.spares.clear();
    for (std::size_t i = 0; i < 2; ++i) {
        r.nodes[i].name = c.name(i == 0 ? 1 : 3);
        r.nodes[i].addr = c.addr(i == 0 ? 1 : 3);
    }
    const auto began = banyan::clock::now();
    for (const int node : {1, 3}) {
        r.self = c.name(node);
        REQUIRE(ckpt::session_open(c.socket(node), r, 5s));
    }
    c.new_step(8, 0, {1, 3});
    auto ranks = start_ranks(c, 8, {1, 3}, 1, 100'000);
    // Its buddy has written for it.
    all_are(ask_all(ranks, "restart"), restored_state{.step = 3, .source = BCK_FROM_STORAGE});
    CHECK(banyan::clock::now() - began < 20s);
    CHECK(c.session(1, 7)["committed"]["step"] == 3);  // for a requeue
}

TEST_CASE("a requeue in the middle of it goes on from memory", "[ckptd]") {
    const gate g;
    cluster c(g.on({1, 2}, 2));
    train_until_killed(c, 7, {1, 2}, 3);
    leave(c, 7, {1, 2});
    auto r = c.request(7, 2, 1, c.dir() + "/store", rarely);
    r.restart = 1;
    c.open(r);
    for (const int node : {1, 2}) {
        const auto opened = ckpt::step_open(c.socket(node), {7, 0, {"n1", "n2"}}, 5s);
        REQUIRE(opened);
    }
    auto ranks = start_ranks(c, 7, {1, 2}, 1, 100'000);
    all_are(ask_all(ranks, "restart"), restored_state{.step = 3, .source = BCK_FROM_LOCAL});
    for (int i = 4; i <= 8; ++i) {
        all_are(ask_all(ranks, "save " + std::to_string(i)), BCK_OK);
        all_are(ask_all(ranks, "wait " + std::to_string(i) + " 2 9000"), BCK_OK);
    }
    g.open();
    leave(c, 7, {1, 2});
    for (auto& rank : ranks) rank.kill();
    CHECK(eventually([&] { return is_stored(c, 8); }));
}

TEST_CASE("a job that comes back and leaves again ends as long as it takes from then on", "[ckptd]") {
    const gate g;
    cluster c(g.on({2}, 2, "retention = \"9s\"\n"));
    train_until_killed(c, 7, {1, 2}, 3);
    const auto is_ending = [&] { return c.session(2, 7)["state"] == "ending"; };
    c.kill(1, SIGSTOP);
    leave(c, 7, {2});  // and waits for the leader's answer
    REQUIRE(eventually(is_ending));
    pass(3s);
    auto r = c.request(7, 2, 1, c.dir() + "/store", rarely);
    r.restart = 1;
    r.self = c.name(2);
    REQUIRE(ckpt::session_open(c.socket(2), r, 5s));
    leave(c, 7, {2});
    REQUIRE(within(500ms, is_ending));
    // Meanwhile the first one hears that the leader does not answer, and its lease is over.
    CHECK_FALSE(within(8500ms, [&] { return !is_ending(); }));
    CHECK(within(1s, [&] { return !is_ending(); }));
    c.kill(1, SIGCONT);
}

TEST_CASE("of several jobs that end at once one whose storage hangs goes with its lease, the others do not",
          "[ckptd]") {
    const gate g;
    auto o = g.on({1}, 1, "retention = \"8s\"\n");
    o.before[1].at(2) = "SLOW_MATCH=rank-000001";  // which the first job alone has
    cluster c(std::move(o));
    const auto store_of = [&](std::uint64_t job) { return c.dir() + "/store-" + std::to_string(job); };
    const std::vector<std::uint64_t> jobs{7, 8, 9};
    for (const auto job : jobs) {
        const int ranks_here = job == 7 ? 2 : 1;
        c.open(c.request(job, 1, ranks_here, store_of(job), rarely));
        c.new_step(job, 0, {1});
        auto ranks = start_ranks(c, job, {1}, ranks_here, 100'000);
        all_are(ask_all(ranks, "save 1"), BCK_OK);
        all_are(ask_all(ranks, "wait 1 1 9000"), BCK_OK);
        for (auto& r : ranks) r.kill();
    }
    for (const auto job : jobs) leave(c, job, {1});
    const auto stored = [&](std::uint64_t job) {
        return std::filesystem::exists(store_of(job) + "/step-000000000001/COMMIT");
    };
    CHECK(eventually([&] { return stored(8) && stored(9); }));
    CHECK(c.session(1, 7)["state"] == "ending");
    CHECK(eventually([&] { return c.session(1, 7).is_null(); }));
    CHECK_FALSE(stored(7));
    // The thread that hangs there holds up nobody.
    c.open(c.request(10, 1, 1, store_of(8), rarely));
    c.new_step(10, 0, {1});
    auto next = start_ranks(c, 10, {1}, 1, 100'000);
    all_are(ask_all(next, "restart"), restored_state{.step = 1, .source = BCK_FROM_STORAGE});
    // What it still writes after that is nobody's step.
    g.open();
    all_are(ask_all(next, "save 2"), BCK_OK);
    all_are(ask_all(next, "wait 2 1 9000"), BCK_OK);
    CHECK_FALSE(stored(7));
}

TEST_CASE("a daemon that is killed while an ended job's step is on its way brings it there", "[ckptd]") {
    const gate g;
    auto o = g.on({1}, 1);
    o.arguments = {"--keeper"};
    cluster c(std::move(o));
    train_until_killed(c, 7, {1}, 3);
    leave(c, 7, {1});
    REQUIRE(eventually([&] { return c.session(1, 7)["state"] == "ending"; }));
    const auto before = c.status(1)["pid"].get<pid_t>();
    REQUIRE(before != c.pid(1));  // which is its keeper's
    ::kill(before, SIGKILL);
    REQUIRE(eventually([&] {
        const auto now = c.status(1);
        return now.is_object() && now["pid"].get<pid_t>() != before;
    }));
    CHECK(eventually([&] { return c.session(1, 7)["state"] == "ending"; }));
    CHECK_FALSE(is_stored(c, 3));
    g.open();
    CHECK(eventually([&] { return is_stored(c, 3); }));
    auto ranks = next_job(c, 8, {1});
    all_are(ask_all(ranks, "restart"), restored_state{.step = 3, .source = BCK_FROM_STORAGE});
}

}  // namespace test_ckptd_ending
