// SPDX-License-Identifier: BSD-3-Clause
//
// What the user hears when checkpoints do not work: the reason, once for the whole job, and never more than
// words.
#include <algorithm>
#include <csignal>
#include <thread>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "ckptd/agreement/key.hpp"
#include "cluster.hpp"

namespace test_ckptd_warnings {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;

namespace {

/// Saves until the ranks have printed `what`.
bool told_while_saving(const cluster& c, std::vector<rank_process>& ranks, std::uint64_t from,
                       const std::string& what) {
    return eventually([&] {
        ask_all(ranks, "save " + std::to_string(from++));
        return c.printed(what) != 0;
    });
}

}  // namespace

TEST_CASE("a directory that is not writable is said at once and never stops the training", "[ckptd]") {
    cluster c({1, "", {}});
    const auto warning = c.open(c.request(3, 1, 1, "/proc/nowhere", 1));
    CHECK(warning.find("/proc/nowhere") != std::string::npos);
    auto ranks = start_ranks(c, 3, {1});
    for (int step = 1; step <= 3; ++step) {
        CHECK(ranks[0].ask("save " + std::to_string(step)) == BCK_OK);
        CHECK(ranks[0].ask("wait " + std::to_string(step) + " 1 5000") == BCK_OK);
    }
    CHECK(eventually([&] { return c.counter(1, 3, "flush_failures").get<int>() >= 2; }));
    CHECK(ranks[0].ask("save 4") == BCK_OK);
    CHECK(c.printed("banyan: ") == 1);
}

TEST_CASE("what fails on all nodes is told once for the job", "[ckptd]") {
    cluster c({3, "", {}});
    c.open(c.request(30, 3, 2, "/proc/nowhere", 1));
    c.new_step(30, 0, {1, 2, 3});
    auto ranks = start_ranks(c, 30, {1, 2, 3}, 2);
    for (int step = 1; step <= 4; ++step) {
        all_are(ask_all(ranks, "save " + std::to_string(step)), BCK_OK);
        for (int node = 1; node <= 3; ++node)
            CHECK(eventually([&] { return c.counter(node, 30, "flush_failures").get<int>() >= step; }));
    }
    CHECK(c.printed("/proc/nowhere") == 1);
    CHECK(c.printed("banyan: ") == 1);
}

TEST_CASE("all daemons dead: one line", "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(31, 2, 2, "", 0));
    auto ranks = start_ranks(c, 31, {1, 2}, 2);
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    all_are(ask_all(ranks, "wait 1 2 5000"), BCK_OK);
    c.kill(1, SIGKILL);
    c.kill(2, SIGKILL);
    all_are(ask_all(ranks, "save 2"), BCK_E_NODAEMON);
    all_are(ask_all(ranks, "save 3"), BCK_E_NODAEMON);
    CHECK(c.printed("checkpoints are off") == 1);
    CHECK(c.printed("banyan: ") == 1);
}

TEST_CASE("one dead daemon: the leader says who is missing and whose copy is local only", "[ckptd]") {
    cluster c({2, "commit_warning_after = \"400ms\"\n", {}});
    c.open(c.request(2, 2, 1, "", 0));
    auto ranks = start_ranks(c, 2, {1, 2});
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    all_are(ask_all(ranks, "wait 1 2 5000"), BCK_OK);
    c.kill(2, SIGKILL);
    CHECK(ranks[1].ask("save 2") == BCK_E_NODAEMON);
    CHECK(ranks[1].ask("save 3") == BCK_E_NODAEMON);
    // Node 1 leads and takes what it has buffers for; nothing becomes complete without rank 1.
    for (int step = 2; step <= 3; ++step) CHECK(ranks[0].ask("save " + std::to_string(step)) == BCK_OK);
    CHECK(ranks[0].ask("wait 3 1 100") == BCK_E_TIMEOUT);
    int last = 1'000'000;
    const auto sealed = ckpt::seal_now(c.socket(1), 2, 3s);
    REQUIRE(sealed);
    CHECK(sealed->front().step == 1);
    CHECK(told_while_saving(c, ranks, 5, "is not complete"));
    CHECK(c.printed("nothing from n2") == 1);
    CHECK(told_while_saving(c, ranks, 1000, "node n2 does not take copies"));
    // The training is not held up for what cannot come: a skipped save costs no waiting any more.
    CHECK(eventually([&] {
        ranks[0].ask("save " + std::to_string(++last));
        return ranks[0].ask("error").find("waits for other nodes") != std::string::npos;
    }));
    CHECK(c.printed("checkpoints are off") == 0);
}

TEST_CASE("a node without a daemon: nobody waits for it for ever, and nobody begins", "[ckptd]") {
    cluster c({3, "restore_timeout = \"3s\"\n", {}});
    const int gone = GENERATE(1, 2);  // slot 0, which all wait for, and another one
    CAPTURE(gone);
    c.kill(gone, SIGKILL);
    c.open(c.request(33, 3, 1, "", 0));
    std::vector<rank_process> others;
    for (const int node : {1, 2, 3})
        if (node != gone) others.emplace_back(c, node, 33, node - 1, 3, state_bytes);
    for (auto& rank : others) rank.say("restart");
    // Slot 0's word is enough to end the step; where slot 0 is missing all others say it.
    for (auto& rank : others) {
        CHECK(rank.hear() == BCK_E_REFUSED);
        const auto why = rank.ask("error");
        CHECK(why.find(fmt::format("the ranks here do not begin: node n{}: ", gone)) != std::string::npos);
        if (gone == 2) break;
    }
    // Back, with all that it knew gone: its session is opened again, and all begin.
    REQUIRE(c.start(gone));
    c.open(c.request(33, 3, 1, "", 0));
    c.new_step(33, 1, {1, 2, 3});
    others.clear();
    auto ranks = start_ranks(c, 33, {1, 2, 3});
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
}

TEST_CASE("a node without a session of the job, or with one of an older run: as one without a daemon",
          "[ckptd]") {
    cluster c({2, "restore_timeout = \"2s\"\n", {}});
    const bool older = GENERATE(false, true);
    CAPTURE(older);
    auto request = c.request(34, 2, 1, "", 0);
    if (older) c.open(request);
    request.restart = 1;
    request.self = "n1";
    REQUIRE(ckpt::session_open(c.socket(1), request, 5s));
    rank_process first(c, 1, 34, 0, 2, state_bytes);
    CHECK(first.ask("restart") == BCK_E_REFUSED);
    const auto why = first.ask("error");
    CHECK(why.find(older ? "node n2: job 34: the session on node n2 is of restart 0, an older one"
                         : "node n2: job 34 has no session on node n2") != std::string::npos);
}

TEST_CASE("a session that was refused: the job hears why, not only that", "[ckptd]") {
    cluster c({1, "memory_limit = \"20M\"\n", {"--exit-when-idle"}});
    auto r = c.request(32, 1, 2, "", 0);
    r.bytes = 10u << 20;
    r.self = "n1";
    REQUIRE_FALSE(ckpt::session_open(c.socket(1), r, 5s));
    auto ranks = start_ranks(c, 32, {1}, 2);
    all_are(ask_all(ranks, "save 1"), BCK_E_NODAEMON);  // as without a daemon: the job trains on
    CHECK(c.printed("checkpoints are off") == 1);
    CHECK(c.printed("memory_limit") == 1);
    // The job over, nobody is left to be told: the daemon leaves.
    ranks.clear();
    REQUIRE(ckpt::session_detach(c.socket(1), 32, 5s));
    CHECK(eventually([&] { return !ckpt::status(c.socket(1), 1s); }));
}

TEST_CASE("a session that was refused is tried again when its ranks ask", "[ckptd]") {
    cluster c({2, "memory_limit = \"60M\"\n", {}});
    auto first = c.request(34, 2, 1, "", 0);
    first.bytes = 10u << 20;
    c.open(first);
    auto r = c.request(35, 2, 1, "", 0);
    r.bytes = 10u << 20;
    for (const int node : {1, 2}) {
        r.self = c.name(node);
        const auto refused = ckpt::session_open(c.socket(node), r, 5s);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code == banyan::errc::exhausted);
        // The step is announced all the same, as slurmstepd does.
        const auto step = ckpt::step_open(c.socket(node), {35, 3, {"n1", "n2"}}, 5s);
        REQUIRE_FALSE(step);
    }
    auto ranks = start_ranks(c, 35, {1, 2});
    all_are(ask_all(ranks, "save 1"), BCK_E_NODAEMON);
    for (const int node : {1, 2}) REQUIRE(ckpt::session_close(c.socket(node), 34, false, 5s));
    ranks.clear();
    pass(600ms);  // memory is looked for twice a second at most, and nothing shows when
    ranks = start_ranks(c, 35, {1, 2});
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    all_are(ask_all(ranks, "save 2"), BCK_OK);
    all_are(ask_all(ranks, "wait 2 2 5000"), BCK_OK);
    CHECK(c.session(1, 35)["generation"] == ckpt::make_generation(0, 3));
}

TEST_CASE("a rank that gets no memory: the leader tells it for the job", "[ckptd]") {
    cluster c({2, "memory_limit = \"40M\"\n", {}});
    c.open(c.request(33, 2, 1, "", 0));
    c.new_step(33, 0, {1, 2});
    std::vector<rank_process> ranks;
    ranks.emplace_back(c, 1, 33, 0, 2, 100'000);
    ranks.emplace_back(c, 2, 33, 1, 2, 30u << 20);
    CHECK(ranks[0].ask("save 1") == BCK_OK);
    CHECK(ranks[1].ask("save 1") == BCK_E_MEMORY);
    CHECK(eventually([&, step = 1]() mutable {
        ranks[0].ask("save " + std::to_string(++step));
        return c.printed("rank 1 on node n2 has no checkpoints") == 1;
    }));
    CHECK(c.printed("banyan: ") == 1);
}

}  // namespace test_ckptd_warnings
