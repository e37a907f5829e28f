// SPDX-License-Identifier: BSD-3-Clause
//
// The way of a checkpoint through memory: save, replicate, commit, restore from every level, each compared
// byte by byte.
#include <csignal>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "ckptd/buffers/rank_memory.hpp"
#include "cluster.hpp"
#include "test/built.hpp"

namespace test_ckptd_memory {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;
namespace fs = std::filesystem;

TEST_CASE("state survives the death of all ranks and comes back from local memory", "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(7, 2, 2, "", 0));
    {
        auto ranks = start_ranks(c, 7, {1, 2}, 2);
        all_are(ask_all(ranks, "test"), found_step{.code = BCK_E_NOTFOUND, .step = 0});  // nothing yet
        for (int step = 1; step <= 5; ++step) all_are(ask_all(ranks, "save " + std::to_string(step)), BCK_OK);
        all_are(ask_all(ranks, "wait 5 2 5000"), BCK_OK);
        for (auto& r : ranks) r.kill();
    }
    c.new_step(7, 1, {1, 2});
    auto ranks = start_ranks(c, 7, {1, 2}, 2);
    all_are(ask_all(ranks, "restart"), restored_state{.step = 5, .source = BCK_FROM_LOCAL});
    all_are(ask_all(ranks, "save 6"), BCK_OK);
    all_are(ask_all(ranks, "wait 6 2 5000"), BCK_OK);
    CHECK(c.counter(1, 7, "storage_bytes_read") == 0);
    CHECK(c.counter(1, 7, "damaged") == 0);
}

TEST_CASE("a spare gets the lost node's shards from the buddy's memory", "[ckptd]") {
    cluster c({4, "", {}});  // n4 is the spare
    c.open(c.request(9, 3, 2, "", 0));
    {
        auto ranks = start_ranks(c, 9, {1, 2, 3}, 2);
        for (int step = 1; step <= 3; ++step) all_are(ask_all(ranks, "save " + std::to_string(step)), BCK_OK);
        all_are(ask_all(ranks, "wait 3 2 5000"), BCK_OK);
    }
    const bool answers =
        GENERATE(true, false);  // a lost node does not count even if its daemon still answers
    if (!answers) c.kill(2, SIGKILL);
    const std::vector<std::string> nodes{"n1", "n4", "n3"};
    for (const int node : {1, 3, 4}) REQUIRE(ckpt::step_open(c.socket(node), {9, 1, nodes}, 5s));
    auto ranks = start_ranks(c, 9, {1, 4, 3}, 2);
    const auto restored = ask_all(ranks, "restart");
    for (const std::size_t i : {0, 1, 4, 5})
        CHECK(restored[i] == restored_state{.step = 3, .source = BCK_FROM_LOCAL});
    for (const std::size_t i : {2, 3})
        CHECK(restored[i] == restored_state{.step = 3, .source = BCK_FROM_PEER});
    CHECK(c.counter(4, 9, "peer_bytes_received") >= 2 * state_bytes);
    CHECK(c.counter(4, 9, "storage_bytes_read") == 0);
    // What lost its second copy gets one: rank 0's buddy was the lost node.
    CHECK(eventually([&] {
        const auto session = c.session(4, 9);
        for (const auto& r : session["replicas"])
            if (r["rank"] == 0 && r["step"] == 3) return true;
        return false;
    }));
    all_are(ask_all(ranks, "save 4"), BCK_OK);
    all_are(ask_all(ranks, "wait 4 2 5000"), BCK_OK);
}

TEST_CASE("a requeue on other nodes finds its state wherever it lies", "[ckptd]") {
    cluster c({3, "", {}});
    c.open(c.request(11, 2, 1, "", 0));
    {
        auto ranks = start_ranks(c, 11, {1, 2});
        all_are(ask_all(ranks, "save 4"), BCK_OK);
        all_are(ask_all(ranks, "wait 4 2 5000"), BCK_OK);
    }
    for (const int node : {1, 2}) REQUIRE(ckpt::session_detach(c.socket(node), 11, 5s));
    // Node 1 is gone; rank 0 now runs on node 2, rank 1 on node 3, which knows nothing.
    c.kill(1, SIGKILL);
    auto r = c.request(11, 2, 1, "", 0);
    r.restart = 1;
    r.nodes[0].name = "n2";
    r.nodes[0].addr = c.addr(2);
    r.nodes[1].name = "n3";
    r.nodes[1].addr = c.addr(3);
    r.spares.clear();
    c.open(r);
    auto ranks = start_ranks(c, 11, {2, 3});
    CHECK(ranks[0].ask("restart") ==
          restored_state{.step = 4, .source = BCK_FROM_LOCAL});  // its replica lay here
    CHECK(ranks[1].ask("restart") == restored_state{.step = 4, .source = BCK_FROM_PEER});
    all_are(ask_all(ranks, "save 5"), BCK_OK);
    all_are(ask_all(ranks, "wait 5 2 5000"), BCK_OK);
}

TEST_CASE("flush, restart from storage alone, old steps go", "[ckptd]") {
    cluster c({2, "", {}});
    const auto storage = c.dir() + "/store";
    CHECK(c.open(c.request(3, 2, 1, storage, 2)).empty());
    {
        auto ranks = start_ranks(c, 3, {1, 2});
        for (int step = 1; step <= 8; ++step) {
            all_are(ask_all(ranks, "save " + std::to_string(step)), BCK_OK);
            if (step % 2 == 0) all_are(ask_all(ranks, "wait " + std::to_string(step) + " 3 8000"), BCK_OK);
        }
    }
    CHECK(fs::exists(storage + "/step-000000000008/COMMIT"));
    CHECK(fs::exists(storage + "/step-000000000006/COMMIT"));
    CHECK(eventually([&] { return !fs::exists(storage + "/step-000000000004"); }));
    CHECK(std::system(
              (banyan::testing::built("banyan-ckpt") + " verify " + storage + " >/dev/null").c_str()) == 0);
    // Both daemons lose everything; another job starts from the same directory.
    for (const int node : {1, 2}) REQUIRE(ckpt::session_close(c.socket(node), 3, false, 5s));
    c.open(c.request(4, 2, 1, storage, 2));
    auto ranks = start_ranks(c, 4, {1, 2});
    all_are(ask_all(ranks, "restart"), restored_state{.step = 8, .source = BCK_FROM_STORAGE});
    CHECK(c.counter(1, 4, "storage_bytes_read") >= state_bytes);
    all_are(ask_all(ranks, "save 9"), BCK_OK);
    all_are(ask_all(ranks, "finalize 1"), BCK_OK);  // 9 is no flush step, but nothing is left behind
    CHECK(fs::exists(storage + "/step-000000000009/COMMIT"));
}

TEST_CASE("what a checkpoint holds is told before anything is protected", "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(17, 2, 1, "", 0));
    {
        auto ranks = start_ranks(c, 17, {1, 2});
        all_are(ask_all(ranks, "stat"), found_step{.code = BCK_E_NOTFOUND, .step = 0});
        all_are(ask_all(ranks, "protect"), BCK_OK);
        all_are(ask_all(ranks, "save 6"), BCK_OK);
        all_are(ask_all(ranks, "wait 6 2 5000"), BCK_OK);
        all_are(ask_all(ranks, "stat"),
                found_step{.code = BCK_E_INVALID, .step = 0});  // would take everybody back
        all_are(ask_all(ranks, "save 7"), BCK_OK);
        all_are(ask_all(ranks, "wait 7 2 5000"), BCK_OK);
    }
    c.new_step(17, 1, {1, 2});
    auto ranks = start_ranks(c, 17, {1, 2});
    for (const auto* name : {"layer.weight", "rest", "step"})
        all_are(ask_all(ranks, std::string("unprotect ") + name), BCK_OK);
    all_are(ask_all(ranks, "unprotect step"), BCK_E_INVALID);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_INVALID));  // nothing to bring it into
    all_are(ask_all(ranks, "test"), found_step{.step = 7});
    const auto told = [](int at) {
        return "0 7 layer.weight:F32:[1187500]:4750000@[" + std::to_string(at) +
               "]/[4750000] rest:U8:[4750003]:4750003 step:U64:[]:8";
    };
    for (int twice = 0; twice < 2; ++twice)
        CHECK(ask_all(ranks, "stat") == std::vector{told(0), told(1187500)});
    all_are(ask_all(ranks, "protect"), BCK_OK);
    all_are(ask_all(ranks, "restart"), restored_state{.step = 7, .source = BCK_FROM_LOCAL});
    CHECK(ask_all(ranks, "stat") == std::vector{told(0), told(1187500)});
    all_are(ask_all(ranks, "save 8"), BCK_OK);
    all_are(ask_all(ranks, "wait 8 2 5000"), BCK_OK);
}

TEST_CASE("a withdrawn region is no longer saved, and an older step that has it still comes back",
          "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(18, 1, 1, "", 0));
    {
        auto ranks = start_ranks(c, 18, {1});
        CHECK(ranks[0].ask("grow 100000") == BCK_OK);
        CHECK(ranks[0].ask("save 1") == BCK_OK);
        CHECK(ranks[0].ask("wait 1 1 5000") == BCK_OK);
    }
    c.new_step(18, 1, {1});
    {
        auto ranks = start_ranks(c, 18, {1});
        CHECK(ranks[0].ask("restart") ==
              restored_state{.step = 1, .source = BCK_FROM_LOCAL});  // "grown" is passed over
        CHECK(ranks[0].ask("unprotect rest") == BCK_OK);
        CHECK(ranks[0].ask("save 2") == BCK_OK);
        CHECK(ranks[0].ask("wait 2 1 5000") == BCK_OK);
    }
    c.new_step(18, 2, {1});
    auto ranks = start_ranks(c, 18, {1});
    CHECK(ranks[0].ask("stat") == "0 2 layer.weight:F32:[1187500]:4750000 step:U64:[]:8");
    CHECK(ranks[0].ask("restart") == not_restored(BCK_E_LAYOUT));  // not silently without "rest"
    CHECK(ranks[0].ask("error") == "region \"rest\" is not in step 2 with this dtype and shape");
}

TEST_CASE("looking at a step is not going back to it", "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(19, 2, 1, "", 0));
    {
        auto ranks = start_ranks(c, 19, {1, 2});
        all_are(ask_all(ranks, "save 3"), BCK_OK);
        all_are(ask_all(ranks, "wait 3 2 5000"), BCK_OK);
    }
    c.new_step(19, 1, {1, 2});
    auto ranks = start_ranks(c, 19, {1, 2});
    all_are(ask_all(ranks, "restart"), restored_state{.step = 3, .source = BCK_FROM_LOCAL});
    // Another process takes rank 1's place: rank 0 is behind, and stays so however often it looks.
    ranks[1].kill();
    rank_process again(c, 2, 19, 1, 2, state_bytes);
    CHECK(again.ask("restart") == restored_state{.step = 3, .source = BCK_FROM_LOCAL});
    CHECK(eventually([&] { return ranks[0].ask("wait 3 0 0") == BCK_E_STALE; }));
    CHECK(ranks[0].ask("stat").starts_with("0 3 layer.weight"));
    CHECK(ranks[0].ask("save 4") == BCK_E_STALE);
    CHECK(ranks[0].ask("grow 20000000") == BCK_OK);
    CHECK(ranks[0].ask("save 4") == BCK_E_STALE);
    CHECK(ranks[0].ask("unprotect grown") == BCK_OK);
    CHECK(ranks[0].ask("restart") == restored_state{.step = 3, .source = BCK_FROM_LOCAL});
    CHECK(ranks[0].ask("save 4") == BCK_OK);
    CHECK(again.ask("save 4") == BCK_OK);
    CHECK(again.ask("wait 4 2 5000") == BCK_OK);
}

TEST_CASE("watch writes a line for each look where there is no terminal", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(21, 1, 1, "", 0));
    auto ranks = start_ranks(c, 21, {1});
    CHECK(ranks[0].ask("save 4") == BCK_OK);
    CHECK(ranks[0].ask("wait 4 1 5000") == BCK_OK);
    const auto out = c.dir() + "/watched", socket = " --socket " + c.socket(1);
    const auto watch =
        banyan::testing::built("banyan-ckpt") + socket + " watch --every 10ms --count 3 >" + out + " 2>&1";
    REQUIRE(std::system(watch.c_str()) == 0);
    std::ifstream text(out);
    int lines = 0;
    for (std::string line; std::getline(text, line); ++lines) {
        CHECK(line.find(" job 21       open      memory 4            copied -            storage -") == 8);
        CHECK(line.size() <= 100);
    }
    CHECK(lines == 3);
    CHECK(std::system(
              (banyan::testing::built("banyan-ckpt") + " --socket " + c.dir() + "/none watch 2>/dev/null")
                  .c_str()) != 0);
}

TEST_CASE("a single node says that it has no second copy", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(5, 1, 2, "", 0));
    auto ranks = start_ranks(c, 5, {1, 1}, 1);
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    all_are(ask_all(ranks, "wait 1 1 5000"), BCK_OK);
    all_are(ask_all(ranks, "wait 1 2 100"), BCK_E_INVALID);
    const auto sealed = ckpt::seal_now(c.socket(1), 5, 2s);
    REQUIRE(sealed);
    REQUIRE(sealed->size() == 1);
    CHECK(sealed->front().step == 1);
    CHECK_FALSE(sealed->front().replicated);
}

TEST_CASE("memory beyond the limit is refused with numbers", "[ckptd]") {
    cluster c({1, "memory_limit = \"20M\"\n", {}});
    auto r = c.request(6, 1, 1, "", 0);
    r.bytes = 10u << 20;
    r.self = "n1";
    const auto answer = ckpt::session_open(c.socket(1), r, 5s);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == banyan::errc::exhausted);
    CHECK(answer.error().text().find("20") != std::string::npos);
    CHECK(c.session(1, 6).is_null());
    r.bytes = 0;
    REQUIRE(ckpt::session_open(c.socket(1), r, 5s));
    auto ranks = start_ranks(c, 6, {1}, 1, 30u << 20);
    CHECK(ranks[0].ask("save 1") == BCK_E_MEMORY);
}

TEST_CASE("a state beyond the limit costs its own save alone", "[ckptd]") {
    cluster c({1, "memory_limit = \"40M\"\n", {}});
    c.open(c.request(6, 1, 1, "", 0));
    auto ranks = start_ranks(c, 6, {1});
    CHECK(ranks[0].ask("save 1") == BCK_OK);
    for (int step = 2; step <= 5; ++step) {
        CHECK(ranks[0].ask("grow 100000000") == BCK_OK);
        CHECK(ranks[0].ask(fmt::format("save {}", step)) == BCK_E_MEMORY);
        CHECK(ranks[0].ask("reserve") == BCK_E_MEMORY);
        CHECK(ranks[0].ask("unprotect grown") == BCK_OK);
    }
    CHECK(ranks[0].ask("save 6") == BCK_OK);
    CHECK(ranks[0].ask("wait 6 1 5000") == BCK_OK);
    CHECK(c.printed("this state has no memory") == 1);
    CHECK(c.printed("checkpoints are off") == 0);
}

TEST_CASE("a rank whose first states are too large does not hold up the others", "[ckptd]") {
    cluster c({2, "memory_limit = \"120M\"\n", {}});
    c.open(c.request(6, 2, 1, "", 0));
    c.new_step(6, 0, {1, 2});
    auto ranks = start_ranks(c, 6, {1, 2});
    CHECK(ranks[1].ask("grow 200000000") == BCK_OK);
    for (int step = 1; step <= 4; ++step) {  // more than there are buffers
        CHECK(ranks[1].ask(fmt::format("save {}", step)) == BCK_E_MEMORY);
        CHECK(ranks[0].ask(fmt::format("save {}", step)) == BCK_OK);
    }
    CHECK(ranks[1].ask("wait 4 0 0") == BCK_E_TIMEOUT);  // there is a daemon
    CHECK(ranks[1].ask("unprotect grown") == BCK_OK);
    all_are(ask_all(ranks, "save 5"), BCK_OK);
    all_are(ask_all(ranks, "wait 5 2 5000"), BCK_OK);
}

TEST_CASE("memory that was reserved is the first save's", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(6, 1, 1, "", 0));
    auto ranks = start_ranks(c, 6, {1});
    CHECK(ranks[0].ask("reserve") == BCK_OK);
    const auto reserved = c.session(1, 6)["memory_bytes"];
    CHECK(reserved.get<std::uint64_t>() > state_bytes);
    CHECK(c.session(1, 6)["committed"].is_null());
    CHECK(ranks[0].ask("save 1") == BCK_OK);
    CHECK(ranks[0].ask("wait 1 1 5000") == BCK_OK);
    CHECK(c.session(1, 6)["memory_bytes"] == reserved);
}

TEST_CASE("there is memory for another node's copies before the first one comes", "[ckptd]") {
    constexpr std::uint64_t bytes = 10u << 20;
    SECTION("a buffer of each copy") {
        cluster c({3, "", {}});  // n3 is the spare
        auto r = c.request(6, 2, 2, "", 0);
        r.bytes = bytes;
        c.open(r);
        const auto held = [&](int node) { return c.session(node, 6)["memory_bytes"].get<std::uint64_t>(); };
        const auto own = 2 * 3 * bytes;
        for (const int node : {1, 2}) CHECK(eventually([&] { return held(node) > own + 2 * bytes; }));
        for (const int node : {1, 2}) CHECK(held(node) < own + 3 * bytes);
        CHECK(held(3) == 0);
        // The spare comes in, and keeps what node 2 kept.
        c.new_step(6, 0, {1, 3});
        CHECK(eventually([&] { return held(3) > own + 2 * bytes; }));
    }
    SECTION("once, however often it is asked for") {
        cluster c({2, "memory_limit = \"90M\"\n", {}});
        auto r = c.request(6, 2, 2, "", 0);
        r.bytes = bytes;
        c.open(r);
        c.open(r);
        c.new_step(6, 0, {1, 2});
        c.new_step(6, 0, {1, 2});
        for (const int node : {1, 2}) {
            CHECK(eventually(
                [&] { return c.session(node, 6)["memory_bytes"].get<std::uint64_t>() > 8 * bytes; }));
            CHECK(c.session(node, 6)["warning"] == "");
        }
    }
    SECTION("it gives way to a rank that is larger than was said") {
        cluster c({2, "memory_limit = \"80M\"\n", {}});
        auto r = c.request(6, 2, 1, "", 0);
        r.bytes = bytes;
        c.open(r);
        for (const int node : {1, 2})
            CHECK(eventually(
                [&] { return c.session(node, 6)["memory_bytes"].get<std::uint64_t>() > 4 * bytes; }));
        auto ranks = start_ranks(c, 6, {1, 2}, 1, 14u << 20);
        all_are(ask_all(ranks, "save 1"), BCK_OK);
    }
    SECTION("none: told at once, and nothing else is refused") {
        cluster c({2, "memory_limit = \"35M\"\n", {}});
        auto r = c.request(6, 2, 1, "", 0);
        r.bytes = bytes;
        c.open(r);
        const auto warning = [&](int node) { return c.session(node, 6)["warning"].get<std::string>(); };
        for (const int node : {1, 2})
            CHECK(eventually(
                [&] { return warning(node).find("35.0 MiB of a job there") != std::string::npos; }));
        auto ranks = start_ranks(c, 6, {1, 2});
        all_are(ask_all(ranks, "save 1"), BCK_OK);
        all_are(ask_all(ranks, "wait 1 1 5000"), BCK_OK);
        CHECK(eventually([&] { return c.printed("does not take copies: ") >= 1; }));
    }
}

TEST_CASE("lease and idle end", "[ckptd]") {
    cluster c({1, "retention = \"300ms\"\n", {"--exit-when-idle"}});
    auto r = c.request(8, 1, 1, "", 0);
    r.bytes = 1 << 20;
    c.open(r);
    CHECK(c.status(1)["memory_used"] > 0);
    REQUIRE(ckpt::session_detach(c.socket(1), 8, 5s));
    c.open(r);  // renewed in time: the lease is off
    REQUIRE(ckpt::session_detach(c.socket(1), 8, 5s));
    CHECK(eventually([&] { return !ckpt::status(c.socket(1), 1s); }));
    CHECK_FALSE(fs::exists(c.socket(1)));
}

TEST_CASE("a node holds at most six times the state of its ranks", "[ckptd]") {
    constexpr std::size_t bytes = 4u << 20;
    cluster c({2, "", {}});
    c.open(c.request(7, 2, 2, "", 0));
    c.new_step(7, 0, {1, 2});
    auto ranks = start_ranks(c, 7, {1, 2}, 2, bytes);
    std::uint64_t most = 0;
    for (int step = 1; step <= 40; ++step) {
        all_are(ask_all(ranks, "save " + std::to_string(step)), BCK_OK);
        most = std::max(most, c.session(1, 7)["memory_bytes"].get<std::uint64_t>());
    }
    // Three buffers a rank, and up to three copies for each of the neighbour's; docs/install.md says so.
    const auto state = 2.0 * bytes;
    INFO("at most " << static_cast<double>(most) / state << " times the state");
    CHECK(static_cast<double>(most) < 6.05 * state);
    CHECK(static_cast<double>(most) > 4.9 * state);
}

TEST_CASE("a save holds what it is given for itself alone, each rank's and each step's its own", "[ckptd]") {
    cluster c({2, "", {}});
    const auto storage = c.dir() + "/store";
    CHECK(c.open(c.request(18, 2, 1, storage, 3)).empty());
    {
        auto ranks = start_ranks(c, 18, {1, 2});
        all_are(ask_all(ranks, "save 1"), BCK_OK);
        CHECK(ranks[0].ask("given 2 weight:4000000 bias:40") == BCK_OK);
        CHECK(ranks[1].ask("given 2 other:2000003") == BCK_OK);
        all_are(ask_all(ranks, "wait 2 2 5000"), BCK_OK);
        // One is protected, and one not; the other rank has nothing in this step.
        CHECK(ranks[0].ask("given 3 bias:40 step") == BCK_OK);
        CHECK(ranks[1].ask("given 3") == BCK_OK);
        all_are(ask_all(ranks, "wait 3 3 8000"), BCK_OK);
        CHECK(ranks[0].ask("given 4 bias:40 bias:40") == BCK_E_INVALID);
        CHECK(ranks[0].ask("error") == "region \"bias\" is there twice in one list of regions");
        CHECK(ranks[0].ask("given 4 neither") == BCK_E_INVALID);
        CHECK(ranks[0].ask("error") == "\"neither\" has no dtype, and no region of this name is protected");
        CHECK(ranks[0].ask("given 4 weight:4000000 bias:40") == BCK_OK);
        CHECK(ranks[1].ask("given 4 other:2000003 more:9000000") == BCK_OK);
        all_are(ask_all(ranks, "wait 4 2 5000"), BCK_OK);
    }
    const auto tool = [&](const std::string& words) {
        return std::system((banyan::testing::built("banyan-ckpt") + " " + words + " >/dev/null").c_str());
    };
    CHECK(tool("verify " + storage) == 0);
    CHECK(tool("show " + storage) == 0);
    CHECK(tool("export " + storage + " " + c.dir() + "/exported") == 0);
    c.new_step(18, 1, {1, 2});
    auto ranks = start_ranks(c, 18, {1, 2});
    CHECK(ranks[0].ask("stat") == "0 4 weight:U8:[4000000]:4000000 bias:U8:[40]:40");
    CHECK(ranks[1].ask("stat") == "0 4 other:U8:[2000003]:2000003 more:U8:[9000000]:9000000");
    // What is protected is not in this step: nothing is brought, and all can be asked again.
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_LAYOUT));
    CHECK(ranks[0].ask("error") == "region \"layer.weight\" is not in step 4 with this dtype and shape");
    CHECK(ranks[0].ask("stat") == "0 4 weight:U8:[4000000]:4000000 bias:U8:[40]:40");
    CHECK(ranks[0].ask("into bias:40 weight:4000000") == restored_state{.step = 4, .source = BCK_FROM_LOCAL});
    CHECK(ranks[1].ask("into more:9000000") == restored_state{.step = 4, .source = BCK_FROM_LOCAL});
    CHECK(ranks[1].ask("into more:8999999") == not_restored(BCK_E_LAYOUT));
    CHECK(ranks[1].ask("into") == restored_state{.step = 4, .source = BCK_FROM_LOCAL});
    all_are(ask_all(ranks, "save 5"), BCK_OK);
    all_are(ask_all(ranks, "wait 5 2 5000"), BCK_OK);
}

TEST_CASE("a list of regions that is the same but for its pointers costs no allocation", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(19, 1, 1, "", 0));
    auto ranks = start_ranks(c, 19, {1});
    const std::vector<std::string> lists{"", "weight:3000000 a.name.that.needs.memory.of.its.own:9 step",
                                         "weight:3000000 a.name.that.needs.memory.of.its.own:9", "step"};
    for (int step = 1; step <= 12; ++step) {
        const auto now = std::to_string(step);
        const auto& list = lists[static_cast<std::size_t>(step) % lists.size()];
        CHECK(ranks[0].ask((list.empty() ? "save " : "given ") + now + " " + list) == BCK_OK);
        if (step > 4) CHECK(ranks[0].ask("allocations") == BCK_OK);
        CHECK(ranks[0].ask("wait " + now + " 1 5000") == BCK_OK);
    }
}

TEST_CASE("a process that went back, and could not take its state, saves nothing until it has it",
          "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(20, 2, 1, "", 0));
    auto ranks = start_ranks(c, 20, {1, 2});
    for (auto& r : ranks) CHECK(r.ask("given 1 w:1000000") == BCK_OK);
    all_are(ask_all(ranks, "wait 1 2 5000"), BCK_OK);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_LAYOUT));
    all_are(ask_all(ranks, "save 2"), BCK_E_STALE);
    all_are(ask_all(ranks, "stat"), "0 1 w:U8:[1000000]:1000000");
    all_are(ask_all(ranks, "save 2"), BCK_E_STALE);
    all_are(ask_all(ranks, "into w:1000000"), restored_state{.step = 1, .source = BCK_FROM_LOCAL});
    all_are(ask_all(ranks, "save 2"), BCK_OK);
    all_are(ask_all(ranks, "wait 2 2 5000"), BCK_OK);
}

TEST_CASE("a state that grows costs the bytes that are new, here and at the buddy", "[ckptd]") {
    // Anything made a second time would not fit.
    cluster c({2, "memory_limit = \"64M\"\n", {}});
    c.open(c.request(22, 2, 1, "", 0));
    const auto used = [&](int node) { return c.status(node)["memory_used"].get<std::uint64_t>(); };
    constexpr std::uint64_t added = 1'000'000, copies = 6;  // of the rank here, and of the other one
    {
        auto ranks = start_ranks(c, 22, {1, 2});
        int step = 0;
        const auto save = [&](int times) {
            for (int i = 0; i < times; ++i) {
                all_are(ask_all(ranks, "save " + std::to_string(++step)), BCK_OK);
                all_are(ask_all(ranks, "wait " + std::to_string(step) + " 2 5000"), BCK_OK);
            }
        };
        save(6);
        const auto before = used(1);
        INFO("before: " << before);
        all_are(ask_all(ranks, "grow " + std::to_string(added)), BCK_OK);
        save(6);
        INFO("then: " << used(1));
        CHECK(used(1) >= before + 4 * added);
        CHECK(used(1) <= before + copies * (added + 2 * ckpt::page_bytes));
        all_are(ask_all(ranks, "unprotect grown"), BCK_OK);
        save(1);
        all_are(ask_all(ranks, "save 14"), BCK_OK);  // and one that is left in the middle
    }
    c.new_step(22, 1, {1, 2});
    auto ranks = start_ranks(c, 22, {1, 2});
    const auto found = ask_all(ranks, "restart");
    CHECK((found[0] == restored_state{.step = 14, .source = BCK_FROM_LOCAL} ||
           found[0] == restored_state{.step = 13, .source = BCK_FROM_LOCAL}));
    CHECK(found[0] == found[1]);
    CHECK(c.counter(1, 22, "damaged") == 0);
    CHECK(c.session(1, 22)["warning"] == "");
}

TEST_CASE("a state may grow as often as it likes", "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(23, 2, 1, "", 0));
    {
        auto ranks = start_ranks(c, 23, {1, 2}, 1, 1'000'000);
        for (int step = 1; step <= 20; ++step) {
            all_are(ask_all(ranks, "grow " + std::to_string(step * 50'000)), BCK_OK);
            all_are(ask_all(ranks, "save " + std::to_string(step)), BCK_OK);
            all_are(ask_all(ranks, "wait " + std::to_string(step) + " 2 5000"), BCK_OK);
        }
    }
    c.new_step(23, 1, {1, 2});
    auto ranks = start_ranks(c, 23, {1, 2}, 1, 1'000'000);
    all_are(ask_all(ranks, "restart"), restored_state{.step = 20, .source = BCK_FROM_LOCAL});
    CHECK(c.counter(1, 23, "damaged") == 0);
}

}  // namespace test_ckptd_memory
