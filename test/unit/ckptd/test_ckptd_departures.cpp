// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes that a job has left behind, and on which nothing of Slurm's tells the daemon so.
#include <algorithm>
#include <csignal>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "cluster.hpp"

namespace test_ckptd_departures {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;

namespace {

constexpr auto lease = "retention = \"300ms\"\n";

/// Step 1 with its second copies, on nodes 1 and 2 of three.
void begin(const cluster& c, std::uint64_t job) {
    CHECK(c.open(c.request(job, 2, 1, "", 0)).empty());
    auto ranks = start_ranks(c, job, {1, 2}, 1, 100'000);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    all_are(ask_all(ranks, "wait 1 2 9000"), BCK_OK);
    for (auto& r : ranks) r.kill();
}

void go_on(const cluster& c, std::uint64_t job, const std::vector<int>& nodes, const std::string& step) {
    auto ranks = start_ranks(c, job, nodes, 1, 100'000);
    for (auto& r : ranks) r.say("restart");
    for (auto& r : ranks) CHECK(r.hear() == BCK_OK);
    // What the node holds may still be wanted.
    CHECK_FALSE(c.session(2, job).is_null());
    all_are(ask_all(ranks, "save " + step), BCK_OK);
    all_are(ask_all(ranks, "wait " + step + " 2 9000"), BCK_OK);
    CHECK(eventually([&] { return c.session(2, job).is_null(); }));
    for (const int node : nodes) CHECK_FALSE(c.session(node, job).is_null());
}

}  // namespace

TEST_CASE("a node whose slot another one took frees the job's memory", "[ckptd]") {
    cluster c({3, lease, {}});
    begin(c, 7);
    SECTION("at once") {
        c.new_step(7, 1, {1, 3});
        go_on(c, 7, {1, 3}, "2");
    }
    SECTION("though the first slot's daemon is the one that is new") {
        c.new_step(7, 1, {3, 1});
        go_on(c, 7, {3, 1}, "2");
    }
    SECTION("also one that was silent meanwhile") {
        c.kill(2, SIGSTOP);
        const std::vector<int> nodes{1, 3};
        const std::vector<std::string> names{c.name(1), c.name(3)};
        for (const int node : nodes) REQUIRE(ckpt::step_open(c.socket(node), {7, 1, names}, 5s));
        auto ranks = start_ranks(c, 7, nodes, 1, 100'000);
        for (auto& r : ranks) r.say("restart");
        for (auto& r : ranks) CHECK(r.hear() == BCK_OK);
        all_are(ask_all(ranks, "save 2"), BCK_OK);
        all_are(ask_all(ranks, "wait 2 2 9000"), BCK_OK);
        c.kill(2, SIGCONT);
        CHECK(eventually([&] { return c.session(2, 7).is_null(); }));
    }
}

TEST_CASE("a node is told again where a rank of the run before had not ended", "[ckptd]") {
    cluster c({3, lease, {}});
    CHECK(c.open(c.request(7, 2, 1, "", 0)).empty());
    auto before = start_ranks(c, 7, {1, 2}, 1, 100'000);
    all_are(ask_all(before, "restart"), not_restored(BCK_E_NOTFOUND));
    all_are(ask_all(before, "save 1"), BCK_OK);
    all_are(ask_all(before, "wait 1 2 9000"), BCK_OK);
    before[0].kill();
    c.new_step(7, 1, {1, 3});
    auto ranks = start_ranks(c, 7, {1, 3}, 1, 100'000);
    for (auto& r : ranks) r.say("restart");
    for (auto& r : ranks) CHECK(r.hear() == BCK_OK);
    all_are(ask_all(ranks, "save 2"), BCK_OK);
    all_are(ask_all(ranks, "wait 2 2 9000"), BCK_OK);
    CHECK(eventually(
        [&] { return c.log(2).find("of an earlier run have not ended yet") != std::string::npos; }));
    CHECK_FALSE(c.session(2, 7).is_null());
    before[1].kill();
    CHECK(eventually([&] { return c.session(2, 7).is_null(); }));
}

TEST_CASE("a node that is back in the job keeps its memory", "[ckptd]") {
    cluster c({3, lease, {}});
    begin(c, 7);
    c.new_step(7, 1, {1, 3});
    {
        auto ranks = start_ranks(c, 7, {1, 3}, 1, 100'000);
        for (auto& r : ranks) r.say("restart");
        for (auto& r : ranks) CHECK(r.hear() == found_step{.step = 1});
    }
    c.new_step(7, 2, {1, 2});
    auto ranks = start_ranks(c, 7, {1, 2}, 1, 100'000);
    all_are(ask_all(ranks, "restart"), restored_state{.step = 1, .source = BCK_FROM_LOCAL});
    all_are(ask_all(ranks, "save 2"), BCK_OK);
    all_are(ask_all(ranks, "wait 2 2 9000"), BCK_OK);
    // The one that has no slot now.
    CHECK(eventually([&] { return c.session(3, 7).is_null(); }));
    CHECK_FALSE(c.session(2, 7).is_null());
}

TEST_CASE("a step that is announced too late takes no memory back into use", "[ckptd]") {
    cluster c({1, lease, {}});
    CHECK(c.open(c.request(7, 1, 1, "", 0)).empty());
    for (const std::uint32_t step : {1u, 2u}) {
        c.new_step(7, step, {1});
        auto ranks = start_ranks(c, 7, {1}, 1, 100'000);
        ranks[0].ask("restart");
        all_are(ask_all(ranks, fmt::format("save {}", step)), BCK_OK);
        all_are(ask_all(ranks, fmt::format("wait {} 1 9000", step)), BCK_OK);
        ranks[0].kill();
    }
    REQUIRE(ckpt::session_detach(c.socket(1), 7, 5s));
    CHECK_FALSE(ckpt::step_open(c.socket(1), {7, 1, {c.name(1)}}, 5s));
    CHECK(eventually([&] { return c.session(1, 7).is_null(); }));
}

TEST_CASE("a job of one node that went to another one frees the first", "[ckptd]") {
    cluster c({2, lease, {}});
    const auto start = [&](int node, std::uint32_t restart) {
        auto r = c.request(7, 1, 1, "", 0);
        r.self = r.nodes[0].name = c.name(node);
        r.nodes[0].addr = c.addr(node);
        r.restart = restart;
        r.spares.clear();
        if (node == 2) r.former = {{c.name(1), c.addr(1)}};
        REQUIRE(ckpt::session_open(c.socket(node), r, 20s));
        REQUIRE(ckpt::step_open(c.socket(node), {7, 0, {r.self}}, 5s));
        auto ranks = start_ranks(c, 7, {node}, 1, 100'000);
        all_are(ask_all(ranks, "restart"), node == 1 ? not_restored(BCK_E_NOTFOUND)
                                                     : restored_state{.step = 1, .source = BCK_FROM_PEER});
        return ranks;
    };
    {
        auto first = start(1, 0);
        all_are(ask_all(first, "save 1"), BCK_OK);
        all_are(ask_all(first, "wait 1 1 9000"), BCK_OK);
    }
    auto second = start(2, 1);
    CHECK_FALSE(c.session(1, 7).is_null());
    all_are(ask_all(second, "save 2"), BCK_OK);
    CHECK(eventually([&] { return c.session(1, 7).is_null(); }));
}

TEST_CASE("nobody makes a node let go of another user's job", "[ckptd]") {
    cluster c({4, lease, {}});
    // One rank a node on nodes `at` and `at` + 1, and nothing on the others.
    const auto start = [&](int at, std::uint32_t restart, uid_t uid) {
        auto r = c.request(7, 2, 1, "", 0);
        r.uid = uid;
        r.restart = restart;
        r.spares.clear();
        for (int i = 0; i < 2; ++i) {
            auto& node = r.nodes[static_cast<std::size_t>(i)];
            node.name = c.name(at + i);
            node.addr = c.addr(at + i);
        }
        // Job numbers come again: the second one's plan names the nodes of the first.
        if (at != 1) r.former = {{c.name(1), c.addr(1)}, {c.name(2), c.addr(2)}};
        const std::vector<std::string> names{c.name(at), c.name(at + 1)};
        for (const auto& name : names) {
            r.self = name;
            REQUIRE(ckpt::session_open(c.dir() + "/" + name + ".sock", r, 20s));
        }
        for (const auto& name : names)
            REQUIRE(ckpt::step_open(c.dir() + "/" + name + ".sock", {7, 0, names}, 5s));
        auto ranks = start_ranks(c, 7, {at, at + 1}, 1, 100'000);
        ask_all(ranks, "restart");
        all_are(ask_all(ranks, fmt::format("save {}", at)), BCK_OK);
        all_are(ask_all(ranks, fmt::format("wait {} 2 9000", at)), BCK_OK);
        return ranks;
    };
    const bool same_user = GENERATE(true, false);
    { const auto first = start(1, 0, same_user ? ::geteuid() : 4711); }
    auto second = start(3, 1, ::geteuid());
    const auto gone = [&] { return c.session(1, 7).is_null() && c.session(2, 7).is_null(); };
    CHECK((same_user ? eventually(gone) : within(4s, gone)) == same_user);
}

namespace {

/// A run of the job on two nodes of its own, one rank a node.
std::vector<rank_process> run_on(const cluster& c, const std::vector<int>& nodes, std::uint32_t restart,
                                 const std::vector<int>& former = {}) {
    auto r = c.request(7, 2, 1, "", 0);
    r.restart = restart;
    r.spares.clear();
    std::vector<std::string> names;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        r.nodes[i].name = c.name(nodes[i]);
        r.nodes[i].addr = c.addr(nodes[i]);
        names.push_back(c.name(nodes[i]));
    }
    for (const int node : former) r.former.push_back({c.name(node), c.addr(node)});
    for (const int node : nodes) {
        r.self = c.name(node);
        REQUIRE(ckpt::session_open(c.socket(node), r, 20s));
    }
    for (const int node : nodes) REQUIRE(ckpt::step_open(c.socket(node), {7, 0, names}, 5s));
    return start_ranks(c, 7, nodes, 1, 100'000);
}

void save(std::vector<rank_process>& ranks, const std::string& in, int step) {
    all_are(ask_all(ranks, fmt::format("{}save {}", in, step)), BCK_OK);
    all_are(ask_all(ranks, fmt::format("{}wait {} 2 9000", in, step)), BCK_OK);
}

bool was_asked(const cluster& c, int node) {
    return c.log(node).find("asks what is held here") != std::string::npos;
}

}  // namespace

TEST_CASE("what a node held that was silent when a state began anew is kept", "[ckptd]") {
    cluster c({4, lease, {}});
    const std::vector<int> before{1, 2};
    {
        auto ranks = run_on(c, before, 0);
        save(ranks, "", 1);
        save(ranks, "in ema ", 5);
    }
    for (const int node : before) c.kill(node, SIGSTOP);
    auto ranks = run_on(c, {3, 4}, 1, before);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    const bool known = GENERATE(true, false);
    CAPTURE(known);
    if (known) all_are(ask_all(ranks, "in ema restart"), not_restored(BCK_E_NOTFOUND));
    for (const int node : before) c.kill(node, SIGCONT);
    // With this the job's own state needs nobody else.
    save(ranks, "", 2);
    const auto is_gone = [&](int node) { return c.session(node, 7).is_null(); };
    CHECK(eventually([&] {
        return std::all_of(before.begin(), before.end(),
                           [&](int node) { return was_asked(c, node) || is_gone(node); });
    }));
    if (known) {
        all_are(ask_all(ranks, "in ema save 6"), BCK_OK);
        for (const int node : before) CHECK_FALSE(is_gone(node));
        all_are(ask_all(ranks, "in ema wait 6 2 9000"), BCK_OK);
    } else {
        // Of a state of which this run had not heard it hears so, and has it.
        CHECK(eventually([&] { return c.session(3, 7)["states"].size() == 1; }));
        all_are(ask_all(ranks, "in ema restart"), restored_state{.step = 5, .source = BCK_FROM_PEER});
        for (const int node : before) CHECK_FALSE(is_gone(node));
        save(ranks, "in ema ", 6);
    }
    for (const int node : before) CHECK(eventually([&] { return is_gone(node); }));
}

TEST_CASE("nodes let go when the states that they have are needed no more, whatever the others do",
          "[ckptd]") {
    cluster c({4, lease, {}});
    const std::vector<int> before{1, 2};
    {
        auto ranks = run_on(c, before, 0);
        save(ranks, "in ema ", 5);
    }
    const bool silent = GENERATE(true, false);
    CAPTURE(silent);
    if (silent)
        for (const int node : before) c.kill(node, SIGSTOP);
    // The state without a name is never saved.
    auto ranks = run_on(c, {3, 4}, 1, before);
    all_are(ask_all(ranks, "in ema restart"),
            silent ? not_restored(BCK_E_NOTFOUND) : restored_state{.step = 5, .source = BCK_FROM_PEER});
    if (silent)
        for (const int node : before) c.kill(node, SIGCONT);
    for (const int node : before) CHECK_FALSE(c.session(node, 7).is_null());
    save(ranks, "in ema ", 6);
    for (const int node : before) CHECK(eventually([&] { return c.session(node, 7).is_null(); }));
}

TEST_CASE("a run that is over tells nobody until the next one has launched", "[ckptd]") {
    cluster c({3, lease, {}});
    {
        auto ranks = run_on(c, {1, 2}, 0);
        save(ranks, "", 1);
    }
    auto r = c.request(7, 2, 1, "", 0);
    r.restart = 1;
    r.spares.clear();
    r.nodes[1] = {c.name(3), c.addr(3), {1}, 0};
    for (const int node : {1, 3}) {
        r.self = c.name(node);
        REQUIRE(ckpt::session_open(c.socket(node), r, 20s));
    }
    pass(3s);  // node 1 would have told node 2, for the run before
    auto ranks = run_on(c, {1, 3}, 1, {2});
    for (const auto& answer : ask_all(ranks, "restart")) CHECK(answer == found_step{.step = 1});
    save(ranks, "", 2);
    CHECK(eventually([&] { return c.session(2, 7).is_null(); }));
}

TEST_CASE("a run that is over does not end the next one's session", "[ckptd]") {
    cluster c({4, lease, {}});
    begin(c, 7);
    c.new_step(7, 1, {1, 3});
    auto ranks = start_ranks(c, 7, {1, 3}, 1, 100'000);
    for (auto& rank : ranks) rank.say("restart");
    for (auto& rank : ranks) CHECK(rank.hear() == found_step{.step = 1});
    auto r = c.request(7, 2, 1, "", 0);
    r.restart = 1;
    r.spares.clear();
    r.nodes[0] = {c.name(2), c.addr(2), {0}, 1};
    r.nodes[1] = {c.name(4), c.addr(4), {1}, 0};
    r.self = c.name(2);
    REQUIRE(ckpt::session_open(c.socket(2), r, 20s));
    save(ranks, "", 2);
    CHECK_FALSE(within(4s, [&] { return c.session(2, 7).is_null(); }));
}

}  // namespace test_ckptd_departures
