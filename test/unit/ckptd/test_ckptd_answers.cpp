// SPDX-License-Identifier: BSD-3-Clause
//
// What the library's codes say to a program that ends, that never asks, or that waits for what cannot come.
#include <csignal>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "cluster.hpp"

namespace test_ckptd_answers {

using namespace ckptd_test;

namespace {

constexpr std::size_t small = 100'000;

std::vector<rank_process> begin(const cluster& c, int nodes, const std::string& storage = "",
                                std::uint64_t flush = 0, std::uint32_t step = 0) {
    std::vector<int> all;
    for (int node = 1; node <= nodes; ++node) all.push_back(node);
    c.open(c.request(7, nodes, 1, storage, flush));
    c.new_step(7, step, all);
    return start_ranks(c, 7, all, 1, small);
}

}  // namespace

TEST_CASE("bck_finalize says so where what was saved is not complete", "[ckptd]") {
    cluster c({3, "commit_warning_after = \"4s\"\n", {}});
    auto ranks = begin(c, 3, c.dir() + "/store", 5);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    SECTION("a node has lost its daemon") {
        c.kill(3, SIGKILL);
        for (const std::size_t rank : {0u, 1u}) CHECK(ranks[rank].ask("save 1") == BCK_OK);
        for (const std::size_t rank : {0u, 1u}) ranks[rank].say("finalize 1");
        for (const std::size_t rank : {0u, 1u}) {
            CHECK(ranks[rank].hear() == BCK_E_TIMEOUT);
            CHECK(ranks[rank].ask("error").find("step 1") != std::string::npos);
        }
    }
    SECTION("the ranks have saved different steps") {
        for (int step = 1; step < 7; step += 3)
            for (std::size_t rank = 0; rank < 3; ++rank)
                CHECK(ranks[rank].ask(fmt::format("save {}", step + static_cast<int>(rank))) == BCK_OK);
        all_are(ask_all(ranks, "finalize 1"), BCK_E_TIMEOUT);
    }
    SECTION("the rank's own daemon is gone: nobody has said that it is") {
        all_are(ask_all(ranks, "save 1"), BCK_OK);
        all_are(ask_all(ranks, "wait 1 2 9000"), BCK_OK);
        c.kill(1, SIGKILL);
        CHECK(ranks[0].ask("save 2") == BCK_E_NODAEMON);
        CHECK(ranks[0].ask("finalize 1") == BCK_E_NODAEMON);
        CHECK(ranks[0].ask("error").find("nobody has said") != std::string::npos);
    }
    SECTION("not where it is") {
        all_are(ask_all(ranks, "save 5"), BCK_OK);
        all_are(ask_all(ranks, "finalize 1"), BCK_OK);
    }
}

TEST_CASE("a process that has never asked for its state does not save over it", "[ckptd]") {
    cluster c({2, "", {}});
    const auto storage = c.dir() + "/store";
    {
        auto ranks = begin(c, 2, storage, 10);
        // Where there is nothing nobody need ask.
        all_are(ask_all(ranks, "save 50"), BCK_OK);
        all_are(ask_all(ranks, "wait 50 3 9000"), BCK_OK);
    }
    auto ranks = begin(c, 2, storage, 10, 1);
    all_are(ask_all(ranks, "save 1"), BCK_E_STALE);
    CHECK(ranks[1].ask("error").find("bck_restart brings step 50") != std::string::npos);
    all_are(ask_all(ranks, "save 2"), BCK_E_STALE);
    all_are(ask_all(ranks, "restart"), found_step{.step = 50});
    all_are(ask_all(ranks, "save 51"), BCK_OK);
    all_are(ask_all(ranks, "wait 51 2 9000"), BCK_OK);
}

TEST_CASE("nobody waits for a level that no step of the job reaches", "[ckptd]") {
    cluster c({2, "", {}});
    const int nodes = GENERATE(1, 2);
    auto ranks = begin(c, nodes);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    CHECK(ranks[0].ask("wait 1 3 -1") == BCK_E_INVALID);
    CHECK(ranks[0].ask("error").find("checkpoint directory") != std::string::npos);
    CHECK(ranks[0].ask("wait 1 2 -1") == (nodes == 1 ? BCK_E_INVALID : BCK_OK));
    CHECK(ranks[0].ask("wait 1 1 9000") == BCK_OK);
}

TEST_CASE("step 0 is the first one that is flushed", "[ckptd]") {
    cluster c({1, "", {}});
    auto ranks = begin(c, 1, c.dir() + "/store", 10);
    CHECK(ranks[0].ask("restart") == not_restored(BCK_E_NOTFOUND));
    CHECK(ranks[0].ask("save 0") == BCK_OK);
    CHECK(ranks[0].ask("wait 0 3 9000") == BCK_OK);
    CHECK(ranks[0].ask("save 9") == BCK_OK);
    CHECK(ranks[0].ask("wait 9 3 2000") == BCK_E_TIMEOUT);
}

TEST_CASE("a daemon that stands still is waited for once", "[ckptd]") {
    cluster c({1, "", {}});
    auto ranks = begin(c, 1);
    CHECK(ranks[0].ask("restart") == not_restored(BCK_E_NOTFOUND));
    c.kill(1, SIGSTOP);
    int step = 0;
    while (ranks[0].ask(fmt::format("save {}", ++step)) == BCK_OK) REQUIRE(step < 9);
    CHECK(ranks[0].ask("error").find("stands still") != std::string::npos);
    const auto began = banyan::clock::now();
    for (int i = 0; i < 10; ++i) CHECK(ranks[0].ask(fmt::format("save {}", ++step)) == BCK_E_BUSY);
    CHECK(banyan::clock::now() - began < 1s);
    c.kill(1, SIGCONT);
    CHECK(eventually([&] { return ranks[0].ask(fmt::format("save {}", ++step)) == BCK_OK; }));
}

TEST_CASE("a job that comes back after its lease hears of what it has lost", "[ckptd]") {
    cluster c({1, "retention = \"3s\"\n", {}});
    {
        auto ranks = begin(c, 1);
        CHECK(ranks[0].ask("save 500") == BCK_OK);
        CHECK(ranks[0].ask("wait 500 1 9000") == BCK_OK);
    }
    REQUIRE(banyan::ckpt::session_detach(c.socket(1), 7, 5s));
    CHECK(eventually([&] { return c.session(1, 7).is_null(); }));
    auto r = c.request(7, 1, 1, "", 0);
    r.restart = 1;
    c.open(r);
    c.new_step(7, 0, {1});
    auto ranks = start_ranks(c, 7, {1}, 1, small);
    CHECK(ranks[0].ask("restart") == not_restored(BCK_E_NOTFOUND));
    CHECK(eventually([&, step = 0]() mutable {
        ranks[0].ask(fmt::format("save {}", ++step));
        return c.printed("step 500, which was in memory alone, was given up") == 1;
    }));
}

}  // namespace test_ckptd_answers
