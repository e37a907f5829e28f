// SPDX-License-Identifier: BSD-3-Clause
//
// A job that is started again on other nodes than before, while its newest state is in the memory of those.
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ckptd/store/owner.hpp"
#include "cluster.hpp"
#include "common/fd.hpp"
#include "ends_at.hpp"
#include "requeues.hpp"

namespace test_ckptd_former {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;
namespace fs = std::filesystem;

namespace {

/// Steps 10 (in storage, where there is one) and 15 (in memory alone); then the job leaves its nodes.
void run_and_leave(const cluster& c, const run& l) {
    auto ranks = begin_run(c, l);
    for (auto& r : ranks) r.say("restart");
    for (auto& r : ranks) CHECK(r.hear() == not_restored(BCK_E_NOTFOUND));
    for (const int step : {10, 15}) {
        all_are(ask_all(ranks, fmt::format("save {}", step)), BCK_OK);
        const int tier = step == 10 && l.flush != 0 ? 3 : 2;
        all_are(ask_all(ranks, fmt::format("wait {} {} 9000", step, tier)), BCK_OK);
    }
    for (auto& r : ranks) r.kill();
    for (const auto node : l.nodes) REQUIRE(ckpt::session_detach(c.socket(node), l.job, 5s));
}

std::vector<answer> restart(std::vector<rank_process>& ranks) {
    for (auto& r : ranks) r.say("restart");
    std::vector<answer> out;
    for (auto& r : ranks) out.push_back(r.hear());
    return out;
}

answer patiently(rank_process& r) {
    answer out;
    for (int tries = 0; tries < 3 && (out = r.hear()) == "no answer";) ++tries;
    return out;
}

/// The claim of the directory, as its user may write it.
void claim_names(const std::string& dir, const std::map<std::string, std::string>& nodes) {
    const ckpt::storage_user me{::geteuid(), ::getegid(), {::getegid()}};
    const auto seen = ckpt::read_owner(me, dir);
    REQUIRE(seen);
    REQUIRE(*seen);
    ckpt::claim c{dir, 0, (*seen)->job, (*seen)->generation, (*seen)->node, 1000, 0};
    c.nodes = nodes;
    REQUIRE(ckpt::take_claim(me, c, *seen));
}

}  // namespace

TEST_CASE("a job on other nodes but one gets what the others still hold", "[ckptd]") {
    cluster c({5, "", {}});
    run_and_leave(c, {.nodes = {1, 2, 3}});
    // Source 1: the node that is left has a copy of its neighbour's; 2: another node.
    const std::vector<restored_state> brought{{.step = 15, .source = BCK_FROM_PEER},
                                              {.step = 15, .source = BCK_FROM_LOCAL},
                                              {.step = 15, .source = BCK_FROM_PEER}};
    SECTION("of three one is left") {
        auto ranks = begin_run(c, {.nodes = {4, 3, 5}, .restart = 1});
        CHECK(restart(ranks) == brought);
        // What was brought is the job's own.
        all_are(ask_all(ranks, "save 16"), BCK_OK);
        all_are(ask_all(ranks, "wait 16 2 9000"), BCK_OK);
    }
    SECTION("two starts, the first of which never began") {
        { const auto never = begin_run(c, {.nodes = {4, 5, 3}, .restart = 1}); }
        auto ranks = begin_run(c, {.nodes = {5, 3, 4}, .restart = 2});
        CHECK(restart(ranks) == brought);
    }
}

TEST_CASE("a former node that is gone when its shard is fetched", "[ckptd]") {
    const std::array<ends_at, 2> ends;
    cluster::options o{5, "restore_timeout = \"20s\"\n", {}};
    for (const int node : {1, 2}) o.before[node] = ends[static_cast<std::size_t>(node - 1)].before();
    cluster c(std::move(o));
    const auto signal = GENERATE(SIGKILL, SIGSTOP);
    SECTION("another one has a copy") {
        run_and_leave(c, {.nodes = {1, 2, 3}});
        ends[0].call("shard", 1, signal);
        auto ranks = begin_run(c, {.nodes = {4, 3, 5}, .restart = 1});
        CHECK(restart(ranks) == std::vector<restored_state>{{.step = 15, .source = BCK_FROM_PEER},
                                                            {.step = 15, .source = BCK_FROM_LOCAL},
                                                            {.step = 15, .source = BCK_FROM_PEER}});
        CHECK(ends[0].has_come("shard"));
    }
    SECTION("nobody else has it: storage has an older step") {
        const run before{.nodes = {1, 2}, .storage = c.dir() + "/store", .flush = 10};
        {
            auto ranks = begin_run(c, before);
            for (auto& r : ranks) r.say("restart");
            for (auto& r : ranks) CHECK(r.hear() == not_restored(BCK_E_NOTFOUND));
            all_are(ask_all(ranks, "save 10"), BCK_OK);
            all_are(ask_all(ranks, "wait 10 3 9000"), BCK_OK);
            all_are(ask_all(ranks, "save 15"), BCK_OK);
            all_are(ask_all(ranks, "wait 15 2 9000"), BCK_OK);
            // Of ranks that die the newest step would be brought to storage.
            all_are(ask_all(ranks, "finalize 0"), BCK_OK);
        }
        for (const auto& e : ends) e.call("shard", 1, signal);
        auto ranks = begin_run(c, {.nodes = {3, 4}, .restart = 1, .storage = before.storage, .flush = 10});
        // One that is silent is waited for, as its node may come back; then the ranks hear of it.
        for (auto& r : ranks) r.say("restart");
        for (auto& r : ranks) CHECK(patiently(r) == not_restored(BCK_E_REFUSED));
        CHECK(ranks[0].ask("error").find("no answer comes from there") != std::string::npos);
        for (const int node : {1, 2}) {
            if (!ends[static_cast<std::size_t>(node - 1)].has_come("shard")) continue;
            if (signal == SIGSTOP)
                c.kill(node, SIGCONT);
            else
                REQUIRE(c.start(node));
        }
        for (const auto& e : ends) e.never("shard");
        for (auto& r : ranks) r.say("restart");
        if (signal == SIGSTOP) {
            for (auto& r : ranks) CHECK(patiently(r) == found_step{.step = 15});
            return;
        }
        for (auto& r : ranks) CHECK(patiently(r) == restored_state{.step = 10, .source = BCK_FROM_STORAGE});
        // What there is to hear is heard with a call that comes after it.
        int step = 20;
        const auto is_told = [&] {
            all_are(ask_all(ranks, "save " + std::to_string(step++)), BCK_OK);
            return c.printed("step 15 cannot be restored, an older one") > 0;
        };
        CHECK(eventually(is_told));
        INFO(c.printed());
    }
}

TEST_CASE("a job that comes back to nodes of two launches ago gets the newest step", "[ckptd]") {
    cluster c({4, "", {}});
    const auto storage = GENERATE(as<std::string>(), "", "store");
    run l{.nodes = {1, 2}};
    if (!storage.empty()) {
        l.storage = c.dir() + "/" + storage;
        l.flush = 10;
    }
    run_and_leave(c, l);
    l.restart = 1;
    l.nodes = {1, 3};  // one that knows of both, and has no rank in the next
    {
        auto ranks = begin_run(c, l);
        CHECK(restart(ranks)[0] == restored_state{.step = 15, .source = BCK_FROM_LOCAL});
        all_are(ask_all(ranks, "save 17"), BCK_OK);
        all_are(ask_all(ranks, "wait 17 2 9000"), BCK_OK);
        for (auto& r : ranks) r.kill();
    }
    for (const int node : l.nodes) REQUIRE(ckpt::session_detach(c.socket(node), 7, 5s));
    // Node 2 alone holds all of step 15.
    l.restart = 2;
    l.nodes = {2, 4};
    if (storage.empty()) l.nodes = {2, 1};
    auto ranks = begin_run(c, l);
    for (const auto& said : restart(ranks)) CHECK(said == found_step{.step = 17});
}

TEST_CASE("a job on wholly other nodes finds the former ones by its directory", "[ckptd]") {
    cluster c({4, "", {}});
    const auto storage = c.dir() + "/store";
    const run before{.nodes = {1, 2}, .storage = storage, .flush = 10};
    const run after{.nodes = {3, 4}, .restart = 1, .storage = storage, .flush = 10};
    run_and_leave(c, before);
    SECTION("which answer") {
        auto ranks = begin_run(c, after);
        all_are(restart(ranks), restored_state{.step = 15, .source = BCK_FROM_PEER});
    }
    SECTION("which do not: storage has the step before, and the user is told of the rest") {
        for (const int node : before.nodes) c.kill(node, SIGSTOP);
        // Not what the ended job still wrote there; whichever step it is, all have the same.
        auto ranks = begin_run(c, after);
        const auto first = restart(ranks);
        all_are(first, first[0]);
        CHECK((first[0] == restored_state{.step = 10, .source = BCK_FROM_STORAGE} ||
               first[0] == restored_state{.step = 15, .source = BCK_FROM_STORAGE}));
        all_are(ask_all(ranks, "save 20"), BCK_OK);
        INFO(c.printed());
        CHECK(eventually([&] { return c.printed("no answer from n[1-2]: a newer checkpoint") == 1; }));
        for (const int node : before.nodes) c.kill(node, SIGCONT);
    }
}

// Else it may commit a step of its launch late, and let go of the one before, which the others rest on.
TEST_CASE("a former node ends its launch before another one begins, also where nothing of it is needed",
          "[ckptd]") {
    cluster c({4, "", {}});
    run l{.nodes = {1, 2, 3}, .storage = c.dir() + "/store", .flush = 10};
    run_and_leave(c, l);
    l.restart = 1;
    l.nodes = {1, 2, 4};  // node 3's shard is on node 1, too
    SECTION("which answers") {
        auto ranks = begin_run(c, l);
        for (const auto& said : restart(ranks)) CHECK(said == found_step{.step = 15});
        CHECK(c.log(3).find("asks what is held here") != std::string::npos);
    }
    SECTION("which does not: nothing is missing, and nobody is told that something may be") {
        c.kill(3, SIGSTOP);
        auto ranks = begin_run(c, l);
        for (const auto& said : restart(ranks)) CHECK(said == found_step{.step = 15});
        CHECK(c.printed("no answer from n3") == 0);
        c.kill(3, SIGCONT);
        CHECK(eventually([&] { return c.log(3).find("asks what is held here") != std::string::npos; }));
    }
}

TEST_CASE("a job on wholly other nodes that has no directory finds the former ones by its plan", "[ckptd]") {
    cluster c({4, "", {}});
    const run before{.nodes = {1, 2}};
    run_and_leave(c, before);
    SECTION("which answer") {
        auto ranks = begin_run(c, {.nodes = {3, 4}, .restart = 1, .former = {1, 2}});
        all_are(restart(ranks), restored_state{.step = 15, .source = BCK_FROM_PEER});
    }
    SECTION("of which the next run's plan names one, as a node of its own too") {
        auto ranks = begin_run(c, {.nodes = {3, 2}, .restart = 1, .former = {2, 1}});
        CHECK(restart(ranks) == std::vector<restored_state>{{.step = 15, .source = BCK_FROM_PEER},
                                                            {.step = 15, .source = BCK_FROM_LOCAL}});
    }
}

TEST_CASE("a user who names another one's nodes in his directory gets nothing of them", "[ckptd]") {
    cluster c({4, "", {}});
    const auto storage = c.dir() + "/store";
    // Job numbers come again: the same one, of another user.
    run_and_leave(c, {.nodes = {1, 2}, .uid = 4711});
    fs::create_directory(storage);
    const ckpt::storage_user me{::geteuid(), ::getegid(), {::getegid()}};
    REQUIRE(ckpt::take_claim(me, {storage, 0, 7, 1, "n1", 1000, 0}, std::nullopt));
    claim_names(storage, {{"n1", c.addr(1)}, {"n2", c.addr(2)}});
    auto ranks = begin_run(c, {.nodes = {3, 4}, .restart = 1, .storage = storage, .flush = 10});
    all_are(restart(ranks), not_restored(BCK_E_NOTFOUND));
}

TEST_CASE("a directory that names thousands of hosts holds up its own job alone", "[ckptd]") {
    cluster c({2, "", {}});
    const auto storage = c.dir() + "/store";
    fs::create_directory(storage);
    // Of the first 300 each takes connections and says nothing; nobody is at the rest.
    std::vector<banyan::unique_fd> mute;
    std::map<std::string, std::string> nodes;
    for (int i = 0; i < 4096; ++i) {
        const auto addr = fmt::format("127.9.{}.{}", i / 250, 1 + i % 250);
        nodes[fmt::format("h{:04}", i)] = addr;
        if (i >= 300) continue;
        mute.emplace_back(::socket(AF_INET, SOCK_STREAM, 0));
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(c.port());
        ::inet_pton(AF_INET, addr.c_str(), &at.sin_addr);
        REQUIRE(::bind(mute.back().get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
        REQUIRE(::listen(mute.back().get(), 16) == 0);
    }
    const ckpt::storage_user me{::geteuid(), ::getegid(), {::getegid()}};
    REQUIRE(ckpt::take_claim(me, {storage, 0, 7, 1, "n1", 1000, 0}, std::nullopt));
    claim_names(storage, nodes);

    auto others = begin_run(c, {.job = 8, .nodes = {1, 2}});
    all_are(restart(others), not_restored(BCK_E_NOTFOUND));
    auto ranks = begin_run(c, {.nodes = {1, 2}, .restart = 1, .storage = storage, .flush = 10});
    for (auto& r : ranks) r.say("restart");
    for (int step = 1; step <= 5; ++step) {
        all_are(ask_all(others, fmt::format("save {}", step)), BCK_OK);
        all_are(ask_all(others, fmt::format("wait {} 2 9000", step)), BCK_OK);
    }
    for (auto& r : ranks) CHECK(r.hear() == not_restored(BCK_E_NOTFOUND));
}

}  // namespace test_ckptd_former
