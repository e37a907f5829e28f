// SPDX-License-Identifier: BSD-3-Clause
//
// A job that goes on with fewer data parallel groups, and comes back to all of them (--train-min-dp).
#include <csignal>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster.hpp"

namespace test_ckptd_shrinking {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;

namespace {

/// A job on nodes 1 to `nodes`, each with a group of its own.
ckpt::session_request elastic(const cluster& c, int nodes, int per_node, const std::string& storage = {}) {
    auto r = c.request(7, nodes, per_node, storage, storage.empty() ? 0 : 1);
    for (const auto& n : r.nodes) r.slots.push_back({n.ranks, n.buddy});
    r.min_nodes = 2;
    r.group = static_cast<std::uint32_t>(per_node);
    return r;
}

/// The ranks of a step that begins now, whose groups all have the same.
std::vector<rank_process> begin(const cluster& c, const std::vector<int>& nodes, int per_node) {
    auto ranks = start_ranks(c, 7, nodes, per_node, 100'000);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        CHECK(ranks[rank].ask("pieces " + std::to_string(per_node) + " " +
                              std::to_string(rank % static_cast<std::size_t>(per_node))) == BCK_OK);
    return ranks;
}

void save(std::vector<rank_process>& ranks, const std::string& step, const std::string& level = "2") {
    all_are(ask_all(ranks, "save " + step), BCK_OK);
    all_are(ask_all(ranks, "wait " + step + " " + level + " 9000"), BCK_OK);
}

/// All begin with `step`, and with the bytes that it has.
void all_begin_with(std::vector<rank_process>& ranks, const std::string& step) {
    for (const auto& answer : ask_all(ranks, "restart")) {
        CAPTURE(answer);
        CHECK(answer == found_step{.step = std::stoull(step)});
        CHECK(answer.restored().same);
    }
}

void end(std::vector<rank_process>& ranks) {
    for (auto& r : ranks) r.kill();
    ranks.clear();
}

}  // namespace

TEST_CASE("a job goes on with fewer groups, and with all of them again", "[ckptd]") {
    const int per_node = GENERATE(1, 2);
    const int lost = GENERATE(1, 2, 4);
    CAPTURE(per_node, lost);
    cluster c({4, "", {}});
    CHECK(c.open(elastic(c, 4, per_node)).empty());
    auto ranks = begin(c, {1, 2, 3, 4}, per_node);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, "1");
    end(ranks);
    c.kill(lost, SIGKILL);
    // Whoever is left stays where he was, and the last one fills the gap.
    auto left = std::vector<int>{1, 2, 3};
    if (lost != 4) left[static_cast<std::size_t>(lost - 1)] = 4;
    c.new_step(7, 1, left);
    ranks = begin(c, left, per_node);
    all_begin_with(ranks, "1");
    save(ranks, "2");
    CHECK(c.session(left[0], 7)["world"] == 3 * per_node);
    end(ranks);

    REQUIRE(c.start(lost));
    CHECK(c.open(elastic(c, 4, per_node)).empty());
    left.push_back(lost);
    c.new_step(7, 2, left);
    ranks = begin(c, left, per_node);
    all_begin_with(ranks, "2");
    save(ranks, "3");
    CHECK(c.session(lost, 7)["world"] == 4 * per_node);
}

TEST_CASE("a step has a node that came into the running job", "[ckptd]") {
    cluster c({4, "", {}});
    auto r = elastic(c, 3, 1);
    r.spares.clear();
    CHECK(c.open(r).empty());
    auto ranks = begin(c, {1, 2, 3}, 1);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, "1");
    end(ranks);
    const std::vector<std::string> names{c.name(1), c.name(2), c.name(4)};
    CHECK(ckpt::step_open(c.socket(1), {7, 1, names}, 5s).error().code == banyan::errc::denied);
    r.nodes[2].name = c.name(4);
    r.nodes[2].addr = c.addr(4);
    CHECK(c.open(r).empty());
    c.new_step(7, 1, {1, 2, 4});
    ranks = begin(c, {1, 2, 4}, 1);
    all_begin_with(ranks, "1");
    save(ranks, "2");
}

TEST_CASE("two losses in a row, the second before a step of the first is complete", "[ckptd]") {
    cluster c({4, "", {}});
    CHECK(c.open(elastic(c, 4, 1)).empty());
    auto ranks = begin(c, {1, 2, 3, 4}, 1);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, "1");
    end(ranks);
    c.kill(1, SIGKILL);
    c.new_step(7, 1, {4, 2, 3});
    ranks = begin(c, {4, 2, 3}, 1);
    const bool begun = GENERATE(true, false);
    if (begun) all_begin_with(ranks, "1");
    end(ranks);
    c.kill(2, SIGKILL);
    c.new_step(7, 2, {4, 3});
    ranks = begin(c, {4, 3}, 1);
    all_begin_with(ranks, "1");
    save(ranks, "2");
}

TEST_CASE("a daemon that is started again knows of the groups", "[ckptd]") {
    cluster c({3, "", {"--keeper"}});
    CHECK(c.open(elastic(c, 3, 1)).empty());
    auto ranks = begin(c, {1, 2, 3}, 1);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, "1");
    end(ranks);
    const auto kill_daemons = [&] {
        for (const int node : {1, 3}) {
            const auto before = c.status(node)["pid"].get<pid_t>();
            REQUIRE(::kill(before, SIGKILL) == 0);
            REQUIRE(eventually([&] {
                const auto now = c.status(node);
                return now.is_object() && now["pid"] != before;
            }));
        }
    };
    kill_daemons();
    c.new_step(7, 1, {1, 3});
    ranks = begin(c, {1, 3}, 1);
    all_begin_with(ranks, "1");
    CHECK(c.session(1, 7)["world"] == 2);
    kill_daemons();
    save(ranks, "2");
    end(ranks);
    c.new_step(7, 2, {1, 3, 2});
    ranks = begin(c, {1, 3, 2}, 1);
    all_begin_with(ranks, "2");
}

TEST_CASE("what may not stand in for another rank's is refused, and kept for all ranks", "[ckptd]") {
    cluster c({4, "", {}});
    CHECK(c.open(elastic(c, 4, 1)).empty());
    auto ranks = start_ranks(c, 7, {1, 2, 3, 4}, 1, 100'000);
    const bool said = GENERATE(true, false);
    CAPTURE(said);
    // As with a sharded optimizer: each rank's is its own, whether it says so or not.
    const auto of = [&](const std::string& parts) {
        for (std::size_t rank = 0; said && rank < ranks.size(); ++rank)
            CHECK(ranks[rank].ask("pieces " + parts + " " + std::to_string(rank)) == BCK_OK);
    };
    of("4");
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, "1");
    end(ranks);
    c.new_step(7, 1, {1, 2, 3});
    ranks = start_ranks(c, 7, {1, 2, 3}, 1, 100'000);
    of("3");
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_LAYOUT));
    end(ranks);
    c.new_step(7, 2, {1, 2, 3, 4});
    ranks = start_ranks(c, 7, {1, 2, 3, 4}, 1, 100'000);
    of("4");
    all_begin_with(ranks, "1");
}

TEST_CASE("a checkpoint in storage is read by another number of groups", "[ckptd]") {
    cluster c({4, "", {}});
    const auto storage = c.dir() + "/storage";
    REQUIRE(::mkdir(storage.c_str(), 0755) == 0);
    CHECK(c.open(elastic(c, 4, 1, storage)).empty());
    auto ranks = begin(c, {1, 2, 3, 4}, 1);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, "1", "3");
    end(ranks);
    const auto start_anew = [&] {
        for (int node = 1; node <= 4; ++node) {
            c.kill(node, SIGKILL);
            REQUIRE(c.start(node));
        }
        CHECK(c.open(elastic(c, 4, 1, storage)).empty());
    };
    start_anew();
    c.new_step(7, 1, {1, 2, 3});
    ranks = begin(c, {1, 2, 3}, 1);
    all_begin_with(ranks, "1");
    save(ranks, "2", "3");
    end(ranks);
    start_anew();
    c.new_step(7, 2, {1, 2, 3, 4});
    ranks = begin(c, {1, 2, 3, 4}, 1);
    all_begin_with(ranks, "2");
}

TEST_CASE("a step has whole groups, and no fewer than may be", "[ckptd]") {
    cluster c({4, "", {}});
    auto r = elastic(c, 4, 1);
    r.group = 2;  // a group has two nodes
    CHECK(c.open(r).empty());
    const auto open = [&](const std::vector<std::string>& nodes) {
        return ckpt::step_open(c.socket(1), {7, 1, nodes}, 5s);
    };
    CHECK_FALSE(open({c.name(1), c.name(2), c.name(3)}));
    CHECK_FALSE(open({c.name(1)}));
    CHECK_FALSE(open({c.name(1), c.name(1)}));
    CHECK_FALSE(open({c.name(1), "elsewhere"}));
    CHECK(open({c.name(1), c.name(2)}));
    // Of a job that did not ask for it a step has all.
    CHECK(c.open(c.request(8, 4, 1, "", 0)).empty());
    CHECK_FALSE(ckpt::step_open(c.socket(1), {8, 1, {c.name(1), c.name(2)}}, 5s));
}

TEST_CASE("a shard that may stand in is waited for while there is no room to take it", "[ckptd]") {
    constexpr std::size_t large = 2'000'000;
    constexpr std::uint64_t limit = 40u << 20, left = 1u << 20;
    cluster c({4, "memory_limit = \"40M\"\n", {}});
    CHECK(c.open(elastic(c, 3, 1)).empty());
    const auto begin_on = [&](const std::vector<int>& nodes) {
        auto ranks = start_ranks(c, 7, nodes, 1, large);
        for (auto& r : ranks) CHECK(r.ask("pieces 1 0") == BCK_OK);
        return ranks;
    };
    auto ranks = begin_on({1, 2, 3});
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, "1");
    end(ranks);
    // Rank 0's shard was on these two; of the same group position node 3 has others'.
    for (const int node : {1, 2}) c.kill(node, SIGKILL);
    auto other = c.request(8, 1, 1, "", 0);
    other.nodes[0] = {c.name(3), c.addr(3), {0}, 0};
    other.spares.clear();
    other.self = c.name(3);
    other.bytes =
        (limit - c.status(3)["memory_used"].get<std::uint64_t>() - left) / other.buffers - (300u << 10);
    const auto opened = ckpt::session_open(c.socket(3), other, 10s);
    if (!opened) FAIL(opened.error().text());
    c.new_step(7, 1, {3, 4});
    ranks = begin_on({3, 4});
    ranks[1].say("restart");
    CHECK(ranks[0].ask("restart").code() < BCK_OK);
    CHECK(eventually([&] {
        return c.session(3, 7)["warning"].get<std::string>().find("banyan-shard-7-0") != std::string::npos;
    }));
    REQUIRE(ckpt::session_close(c.socket(3), 8, false, 5s));
    ranks[0].kill();
    rank_process again(c, 3, 7, 0, 2, large);
    CHECK(again.ask("pieces 1 0") == BCK_OK);
    const auto answer = again.ask("restart");
    CAPTURE(answer);
    CHECK(answer == found_step{.step = 1});
    CHECK(ranks[1].hear() == found_step{.step = 1});
    CHECK(c.printed("cannot be restored") == 0);
}

namespace {

void begin_in(std::vector<rank_process>& ranks, const std::string& state, const std::string& step) {
    for (const auto& answer : ask_all(ranks, "in " + state + " restart")) {
        CAPTURE(answer);
        CHECK(answer == found_step{.step = std::stoull(step)});
        CHECK(answer.restored().same);
    }
}

void save_in(std::vector<rank_process>& ranks, const std::string& state, const std::string& step,
             const std::string& level = "2") {
    all_are(ask_all(ranks, "in " + state + " save " + step), BCK_OK);
    all_are(ask_all(ranks, "in " + state + " wait " + step + " " + level + " 9000"), BCK_OK);
}

/// That the named state, too, is in pieces that all groups have alike.
void name_pieces(std::vector<rank_process>& ranks, const std::string& state, int per_node) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        CHECK(ranks[rank].ask(fmt::format("in {} pieces {} {}", state, per_node,
                                          rank % static_cast<std::size_t>(per_node))) == BCK_OK);
}

}  // namespace

TEST_CASE("named states go on with fewer groups, and with all of them again", "[ckptd]") {
    const int per_node = GENERATE(1, 2);
    const int lost = GENERATE(1, 2, 4);
    CAPTURE(per_node, lost);
    cluster c({4, "", {}});
    CHECK(c.open(elastic(c, 4, per_node)).empty());
    auto ranks = begin(c, {1, 2, 3, 4}, per_node);
    name_pieces(ranks, "ema", per_node);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    all_are(ask_all(ranks, "in ema restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, "1");
    save_in(ranks, "ema", "10");
    save(ranks, "2");
    end(ranks);
    c.kill(lost, SIGKILL);
    auto left = std::vector<int>{1, 2, 3};
    if (lost != 4) left[static_cast<std::size_t>(lost - 1)] = 4;
    c.new_step(7, 1, left);
    ranks = begin(c, left, per_node);
    name_pieces(ranks, "ema", per_node);
    all_begin_with(ranks, "2");
    begin_in(ranks, "ema", "10");
    CHECK(c.session(left[0], 7)["states"][0]["world"] == 3 * per_node);
    save_in(ranks, "ema", "11");
    end(ranks);

    REQUIRE(c.start(lost));
    CHECK(c.open(elastic(c, 4, per_node)).empty());
    left.push_back(lost);
    c.new_step(7, 2, left);
    ranks = begin(c, left, per_node);
    name_pieces(ranks, "ema", per_node);
    begin_in(ranks, "ema", "11");
    all_begin_with(ranks, "2");
    save(ranks, "3");
    save_in(ranks, "ema", "12");
}

TEST_CASE("a named state whose shards may not stand in is refused, and the other one begins", "[ckptd]") {
    cluster c({4, "", {}});
    CHECK(c.open(elastic(c, 4, 1)).empty());
    auto ranks = begin(c, {1, 2, 3, 4}, 1);
    save(ranks, "1");
    // What it holds is not said to be a piece of anything.
    save_in(ranks, "ema", "10");
    end(ranks);
    c.new_step(7, 1, {1, 2, 3});
    ranks = begin(c, {1, 2, 3}, 1);
    all_begin_with(ranks, "1");
    all_are(ask_all(ranks, "in ema restart"), not_restored(BCK_E_LAYOUT));
    end(ranks);
    c.new_step(7, 2, {1, 2, 3, 4});
    ranks = begin(c, {1, 2, 3, 4}, 1);
    all_begin_with(ranks, "1");
    begin_in(ranks, "ema", "10");
}

TEST_CASE("a named state in storage is read by another number of groups", "[ckptd]") {
    cluster c({4, "", {}});
    const auto storage = c.dir() + "/storage";
    REQUIRE(::mkdir(storage.c_str(), 0755) == 0);
    CHECK(c.open(elastic(c, 4, 1, storage)).empty());
    auto ranks = begin(c, {1, 2, 3, 4}, 1);
    name_pieces(ranks, "ema", 1);
    save(ranks, "1", "3");
    save_in(ranks, "ema", "10", "3");
    end(ranks);
    for (int node = 1; node <= 4; ++node) {
        c.kill(node, SIGKILL);
        REQUIRE(c.start(node));
    }
    CHECK(c.open(elastic(c, 4, 1, storage)).empty());
    c.new_step(7, 1, {1, 2, 3});
    ranks = begin(c, {1, 2, 3}, 1);
    name_pieces(ranks, "ema", 1);
    begin_in(ranks, "ema", "10");
    all_begin_with(ranks, "1");
}

}  // namespace test_ckptd_shrinking
