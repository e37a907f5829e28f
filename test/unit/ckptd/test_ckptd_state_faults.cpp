// SPDX-License-Identifier: BSD-3-Clause
//
// Daemons and nodes that are lost under jobs whose processes keep two states.
#include <csignal>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "cluster.hpp"

namespace test_ckptd_state_faults {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;

namespace {

constexpr std::size_t small = 100'000;

void save(std::vector<rank_process>& ranks, int step, const std::string& in = "") {
    all_are(ask_all(ranks, fmt::format("{}save {}", in, step)), BCK_OK);
    all_are(ask_all(ranks, fmt::format("{}wait {} 2 12000", in, step)), BCK_OK);
}

pid_t daemon_of(const cluster& c, int node) {
    const auto now = c.status(node);
    return now.is_object() ? now["pid"].get<pid_t>() : -1;
}

void kill_daemon(const cluster& c, int node) {
    const auto pid = daemon_of(c, node);
    REQUIRE(pid > 0);
    REQUIRE(pid != c.pid(node));
    ::kill(pid, SIGKILL);
}

/// One rank a node on each of `nodes`, in a run of the job of its own.
std::vector<rank_process> start(const cluster& c, const std::vector<int>& nodes, std::uint32_t restart,
                                const std::vector<int>& former = {}) {
    auto r = c.request(7, 1, 1, "", 0);
    r.nodes.clear();
    r.spares.clear();
    r.restart = restart;
    r.world = static_cast<std::uint32_t>(nodes.size());
    std::vector<std::string> names;
    for (std::uint32_t slot = 0; slot < r.world; ++slot) {
        const auto node = nodes[slot];
        r.nodes.push_back({c.name(node), c.addr(node), {slot}, (slot + 1) % r.world});
        names.push_back(c.name(node));
    }
    for (const auto node : former) r.former.push_back({c.name(node), c.addr(node)});
    for (const auto node : nodes) {
        r.self = c.name(node);
        const auto opened = ckpt::session_open(c.socket(node), r, 20s);
        if (!opened) FAIL(opened.error().text());
    }
    for (const auto node : nodes) REQUIRE(ckpt::step_open(c.socket(node), {7, 0, names}, 5s));
    return start_ranks(c, 7, nodes, 1, small);
}

}  // namespace

TEST_CASE("a daemon that is started again has both states", "[ckptd]") {
    cluster c({2, "", {"--keeper"}});
    c.open(c.request(7, 2, 2, "", 0));
    c.new_step(7, 0, {1, 2});
    auto ranks = start_ranks(c, 7, {1, 2}, 2, small);
    save(ranks, 1);
    save(ranks, 5, "in ema ");
    for (int step = 2; step <= 4; ++step) save(ranks, step);
    SECTION("under processes that train on") {
        for (const int node : {1, 2}) {
            const auto before = daemon_of(c, node);
            kill_daemon(c, node);
            save(ranks, 10 * node);
            save(ranks, 10 * node + 1, "in ema ");
            CHECK(eventually([&] { return daemon_of(c, node) > 0 && daemon_of(c, node) != before; }));
        }
        kill_daemon(c, 1);
        kill_daemon(c, 2);
        save(ranks, 31, "in ema ");
        save(ranks, 30);
        for (auto& r : ranks) r.kill();
        c.new_step(7, 1, {1, 2});
        auto again = start_ranks(c, 7, {1, 2}, 2, small);
        all_are(ask_all(again, "restart"), restored_state{.step = 30, .source = BCK_FROM_LOCAL});
        all_are(ask_all(again, "in ema restart"), restored_state{.step = 31, .source = BCK_FROM_LOCAL});
    }
    SECTION("before the processes of the next launch come") {
        for (auto& r : ranks) r.kill();
        kill_daemon(c, 1);
        kill_daemon(c, 2);
        REQUIRE(eventually([&] { return daemon_of(c, 1) > 0 && daemon_of(c, 2) > 0; }));
        c.new_step(7, 1, {1, 2});
        auto again = start_ranks(c, 7, {1, 2}, 2, small);
        all_are(ask_all(again, "in ema restart"), restored_state{.step = 5, .source = BCK_FROM_LOCAL});
        all_are(ask_all(again, "restart"), restored_state{.step = 4, .source = BCK_FROM_LOCAL});
        save(again, 6, "in ema ");
    }
    CHECK(c.printed("checkpoints are off") == 0);
}

TEST_CASE("a node that is lost has left the copies of both states at its buddy", "[ckptd]") {
    cluster c({3, "", {}});
    c.open(c.request(7, 2, 1, "", 0));
    c.new_step(7, 0, {1, 2});
    auto ranks = start_ranks(c, 7, {1, 2}, 1, small);
    for (int step = 1; step <= 3; ++step) save(ranks, step);
    save(ranks, 2, "in ema ");
    save(ranks, 4);
    for (auto& r : ranks) r.kill();
    ranks.clear();
    const int lost = GENERATE(1, 2);
    const int other = 3 - lost;
    c.kill(lost, SIGKILL);
    const std::vector<int> nodes = lost == 1 ? std::vector{3, 2} : std::vector{1, 3};
    std::vector<std::string> names{c.name(nodes[0]), c.name(nodes[1])};
    for (const int node : nodes) REQUIRE(ckpt::step_open(c.socket(node), {7, 1, names}, 5s));
    ranks = start_ranks(c, 7, nodes, 1, small);
    for (auto& r : ranks) r.say("restart");
    for (std::size_t i = 0; i < 2; ++i)
        CHECK(ranks[i].hear() == (nodes[i] == other ? restored_state{.step = 4, .source = BCK_FROM_LOCAL}
                                                    : restored_state{.step = 4, .source = BCK_FROM_PEER}));
    for (auto& r : ranks) r.say("in ema restart");
    for (std::size_t i = 0; i < 2; ++i)
        CHECK(ranks[i].hear() == (nodes[i] == other ? restored_state{.step = 2, .source = BCK_FROM_LOCAL}
                                                    : restored_state{.step = 2, .source = BCK_FROM_PEER}));
    save(ranks, 3, "in ema ");
    save(ranks, 5);
}

TEST_CASE("a run on other nodes has both states, whenever its ranks ask for them", "[ckptd]") {
    cluster c({4, "retention = \"500ms\"\n", {}});
    {
        auto ranks = start(c, {1, 2}, 0);
        for (int step = 1; step <= 3; ++step) save(ranks, step);
        save(ranks, 2, "in ema ");
    }
    auto ranks = start(c, {3, 4}, 1, {1, 2});
    all_are(ask_all(ranks, "restart"), restored_state{.step = 3, .source = BCK_FROM_PEER});
    // The job needs nothing of the others' memory of its first state any more, but of this one it does.
    for (int step = 4; step <= 6; ++step) save(ranks, step);
    const auto gone = [&] { return c.session(1, 7).is_null() && c.session(2, 7).is_null(); };
    CHECK_FALSE(within(2s, gone));
    for (const int node : {3, 4}) CHECK(c.session(node, 7)["states"][0]["committed"]["step"] == 2);
    all_are(ask_all(ranks, "in ema restart"), restored_state{.step = 2, .source = BCK_FROM_PEER});
    save(ranks, 3, "in ema ");
    CHECK(eventually(gone));
    for (auto& r : ranks) r.kill();
    c.new_step(7, 1, {3, 4});
    auto again = start_ranks(c, 7, {3, 4}, 1, small);
    all_are(ask_all(again, "in ema restart"), restored_state{.step = 3, .source = BCK_FROM_LOCAL});
    all_are(ask_all(again, "restart"), restored_state{.step = 6, .source = BCK_FROM_LOCAL});
}

TEST_CASE("a launch is over for every state at once", "[ckptd]") {
    cluster c({4, "", {}});
    auto old = start(c, {1, 2}, 0);
    save(old, 1);
    save(old, 1, "in ema ");
    // These live on, as after a partition, and the next run rests on what was held.
    auto ranks = start(c, {3, 4}, 1, {1, 2});
    all_are(ask_all(ranks, "restart"), restored_state{.step = 1, .source = BCK_FROM_PEER});
    all_are(ask_all(old, "in ema save 2"), BCK_OK);
    CHECK(old[0].ask("in ema wait 2 1 500") == BCK_E_TIMEOUT);
    CHECK(old[0].ask("in late save 1") == BCK_OK);
    CHECK(old[1].ask("in late save 1") == BCK_OK);
    CHECK(old[0].ask("in late wait 1 1 500") == BCK_E_TIMEOUT);
    all_are(ask_all(ranks, "in ema restart"), restored_state{.step = 1, .source = BCK_FROM_PEER});
    save(ranks, 2, "in ema ");
}

TEST_CASE("a process of a launch that is over saves in no state", "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(7, 2, 1, "", 0));
    c.new_step(7, 0, {1, 2});
    auto old = start_ranks(c, 7, {1, 2}, 1, small);
    save(old, 1, "in ema ");
    c.new_step(7, 1, {1, 2});
    {
        // It waits for the one that holds the rank, in whichever state.
        rank_process early(c, 1, 7, 0, 2, small);
        const auto refused = early.ask("restart");
        CHECK(refused == BCK_E_REFUSED);
        CHECK(early.ask("error").find("of an older step") != std::string::npos);
    }
    for (auto& r : old) r.kill();
    auto ranks = start_ranks(c, 7, {1, 2}, 1, small);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    all_are(ask_all(ranks, "in ema restart"), restored_state{.step = 1, .source = BCK_FROM_LOCAL});
}

TEST_CASE("daemons that are killed again and again keep both states' steps apart", "[ckptd]") {
    cluster c({3, "", {"--keeper"}});
    c.open(c.request(7, 3, 1, "", 0));
    c.new_step(7, 0, {1, 2, 3});
    auto ranks = start_ranks(c, 7, {1, 2, 3}, 1, 300'000);
    std::uint64_t first = 0, second = 0, step = 0;
    for (int round = 0; round < 6; ++round) {
        // Each of them twice: the third end so soon after the start would be taken for its own fault.
        const int node = 1 + round % 3;
        for (int i = 0; i < 3; ++i) {
            ++step;
            for (auto& r : ranks) r.say(fmt::format("save {}", step));
            if (i == 1)
                if (const auto pid = daemon_of(c, node); pid > 0) ::kill(pid, SIGKILL);
            for (auto& r : ranks) r.say(fmt::format("in ema save {}", 1000 + step));
            for (auto& r : ranks)
                for (int two = 0; two < 2; ++two) {
                    const auto code = r.hear();
                    CHECK((code == BCK_OK || code == BCK_E_BUSY));  // no buffer was free
                }
        }
        if (ask_all(ranks, fmt::format("wait {} 2 3000", step)) == std::vector<int>(3, BCK_OK)) first = step;
        if (ask_all(ranks, fmt::format("in ema wait {} 2 3000", 1000 + step)) == std::vector<int>(3, BCK_OK))
            second = 1000 + step;
        REQUIRE(eventually([&] { return daemon_of(c, node) > 0; }));
    }
    CHECK(first > 0);
    CHECK(second > 0);
    for (auto& r : ranks) r.kill();
    ranks.clear();
    c.new_step(7, 1, {1, 2, 3});
    auto again = start_ranks(c, 7, {1, 2, 3}, 1, 300'000);
    for (const bool named : {true, false}) {
        const auto got = ask_all(again, named ? "in ema restart" : "restart");
        for (const auto& one : got) CHECK(one == got[0]);
        const auto from = got[0].restored().step;
        CHECK(got[0] == BCK_OK);
        CHECK(got[0].restored().same);
        CHECK(from >= (named ? second : first));
        CHECK((from > 1000) == named);
    }
}

TEST_CASE("a state is in the running job again when its job is", "[ckptd]") {
    cluster c({2, "", {"--keeper"}});
    {
        auto ranks = start(c, {1, 2}, 0);
        save(ranks, 1);
        save(ranks, 5, "in ema ");
    }
    for (const int node : {1, 2}) REQUIRE(ckpt::session_detach(c.socket(node), 7, 5s));
    CHECK(c.session(1, 7)["states"][0]["state"] == "detached");
    auto r = c.request(7, 2, 1, "", 0);
    r.restart = 1;
    c.open(r);
    c.new_step(7, 0, {1, 2});
    // Nothing of the state has changed since, but whether it is left.
    const auto before = daemon_of(c, 1);
    kill_daemon(c, 1);
    REQUIRE(eventually([&] { return daemon_of(c, 1) > 0 && daemon_of(c, 1) != before; }));
    CHECK(c.session(1, 7)["state"] == "open");
    CHECK(c.session(1, 7)["states"][0]["state"] == "open");
    auto ranks = start_ranks(c, 7, {1, 2}, 1, small);
    all_are(ask_all(ranks, "in ema restart"), restored_state{.step = 5, .source = BCK_FROM_LOCAL});
    for (const int node : {1, 2}) CHECK(c.session(node, 7)["states"][0]["state"] == "open");
}

}  // namespace test_ckptd_state_faults
