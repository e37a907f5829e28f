// SPDX-License-Identifier: BSD-3-Clause
//
// A state that one number of ranks has saved, and another number goes on with: from storage, from memory, and
// from both where the rest is lost.
#include <csignal>
#include <fstream>

#include <catch2/catch.hpp>

#include "cluster.hpp"

namespace test_ckptd_worlds {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;

namespace {

constexpr std::uint64_t rows = 103;  // in no number of ranks alike

/// The ranks of a step that begins now, each with its part of the rows.
std::vector<rank_process> begin(const cluster& c, std::uint64_t job, const std::vector<int>& nodes,
                                int per_node) {
    auto ranks = start_ranks(c, job, nodes, per_node, 100);
    for (std::uint64_t rank = 0, first = 0; rank < ranks.size(); ++rank) {
        const auto end = rows * (rank + 1) / ranks.size();
        CHECK(ranks[rank].ask("rows " + std::to_string(first) + " " + std::to_string(end - first) + " " +
                              std::to_string(rows)) == 0);
        first = end;
    }
    return ranks;
}

void save(std::vector<rank_process>& ranks, const std::string& step, const std::string& level) {
    all_are(ask_all(ranks, "rows_save " + step), BCK_OK);
    all_are(ask_all(ranks, "wait " + step + " " + level + " 9000"), BCK_OK);
}

void all_begin_with(std::vector<rank_process>& ranks, std::uint64_t step,
                    const std::string& how = "rows_restart") {
    const auto answers = ask_all(ranks, how), errors = ask_all(ranks, "error");
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        CAPTURE(how, rank, errors[rank]);
        CHECK(answers[rank] == found_step{.step = step});
        CHECK(answers[rank].restored().same);
    }
}

void end(std::vector<rank_process>& ranks) {
    for (auto& r : ranks) r.kill();
    ranks.clear();
}

ckpt::session_request job(const cluster& c, std::uint64_t id, int nodes, int per_node,
                          const std::string& dir) {
    auto r = c.request(id, nodes, per_node, dir, dir.empty() ? 0 : 1);
    r.spares.clear();
    return r;
}

/// May lose nodes; the rows are divided among all ranks, so no rank holds what another one does.
ckpt::session_request elastic(const cluster& c, int nodes, const std::string& dir) {
    auto r = c.request(7, nodes, 1, dir, dir.empty() ? 0 : 1);
    for (const auto& n : r.nodes) r.slots.push_back({n.ranks, n.buddy});
    r.min_nodes = 2;
    r.group = 1;
    return r;
}

}  // namespace

TEST_CASE("a job of another number of ranks goes on from the directory", "[ckptd]") {
    const auto [nodes, per_node] = GENERATE(std::pair(1, 1), std::pair(2, 1), std::pair(3, 3));
    CAPTURE(nodes, per_node);
    cluster c({3, "", {}});
    const auto dir = c.dir() + "/out";
    CHECK(c.open(job(c, 7, 2, 2, dir)).empty());
    auto ranks = begin(c, 7, {1, 2}, 2);
    all_are(ask_all(ranks, "rows_restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, "1", "3");
    all_are(ask_all(ranks, "finalize 1"), BCK_OK);
    end(ranks);
    for (const int node : {1, 2}) REQUIRE(ckpt::session_detach(c.socket(node), 7, 5s));

    CHECK(c.open(job(c, 8, nodes, per_node, dir)).empty());
    std::vector<int> on;
    for (int node = 1; node <= nodes; ++node) on.push_back(node);
    ranks = begin(c, 8, on, per_node);
    // What a program that says nothing of parts hears, and that it can go on asking.
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_LAYOUT));
    CHECK(ranks[0].ask("error").find("step 1 is of 4 ranks") != std::string::npos);
    all_are(ask_all(ranks, "save 2"), BCK_E_STALE);
    all_begin_with(ranks, 1);
    all_begin_with(ranks, 1, "rows_read");
    save(ranks, "2", "3");
    // A rank that is started again takes all back to what is theirs now.
    ranks.back().kill();
    ranks.pop_back();
    end(ranks);
    c.new_step(8, 1, on);
    ranks = begin(c, 8, on, per_node);
    all_begin_with(ranks, 2);
}

TEST_CASE("a job with fewer nodes reads what they all had from memory", "[ckptd]") {
    const bool stored = GENERATE(false, true);
    const bool lost = GENERATE(false, true);
    CAPTURE(stored, lost);
    cluster c({4, "", {}});
    const auto dir = stored ? c.dir() + "/out" : "";
    CHECK(c.open(elastic(c, 4, dir)).empty());
    auto ranks = begin(c, 7, {1, 2, 3, 4}, 1);
    all_are(ask_all(ranks, "rows_restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, "1", stored ? "3" : "2");
    end(ranks);
    if (lost) c.kill(3, SIGKILL);  // its buddy has what it had
    c.new_step(7, 1, {1, 2, 4});
    ranks = begin(c, 7, {1, 2, 4}, 1);
    all_begin_with(ranks, 1);
    all_begin_with(ranks, 1, "rows_read");
    save(ranks, "2", "2");
    end(ranks);
    // And all of them again.
    if (lost) REQUIRE(c.start(3));
    CHECK(c.open(elastic(c, 4, dir)).empty());
    c.new_step(7, 2, {1, 2, 4, 3});
    ranks = begin(c, 7, {1, 2, 4, 3}, 1);
    all_begin_with(ranks, 2);
    save(ranks, "3", "2");
}

TEST_CASE("a damaged step is stepped over by another number of ranks, too", "[ckptd]") {
    cluster c({2, "", {}});
    const auto dir = c.dir() + "/out";
    CHECK(c.open(job(c, 7, 2, 2, dir)).empty());
    auto ranks = begin(c, 7, {1, 2}, 2);
    all_are(ask_all(ranks, "rows_restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, "1", "3");
    save(ranks, "2", "3");
    all_are(ask_all(ranks, "finalize 1"), BCK_OK);
    end(ranks);
    for (const int node : {1, 2}) REQUIRE(ckpt::session_detach(c.socket(node), 7, 5s));
    {
        std::fstream file(dir + "/step-000000000002/rank-000002.safetensors", std::ios::in | std::ios::out);
        file.seekp(500'000);
        file.put('\x7f').put('\x7e');
    }
    CHECK(c.open(job(c, 8, 1, 2, dir)).empty());
    ranks = begin(c, 8, {1}, 2);
    all_begin_with(ranks, 1);
}

TEST_CASE("what is lost of a state in parts is not made up", "[ckptd]") {
    cluster c({4, "", {}});
    CHECK(c.open(elastic(c, 4, "")).empty());
    auto ranks = begin(c, 7, {1, 2, 3, 4}, 1);
    all_are(ask_all(ranks, "rows_restart"), not_restored(BCK_E_NOTFOUND));
    save(ranks, "1", "2");
    end(ranks);
    const auto request = elastic(c, 4, "");
    const int buddy = static_cast<int>(request.nodes[1].buddy) + 1;  // of node 2
    c.kill(2, SIGKILL);
    c.kill(buddy, SIGKILL);
    std::vector<int> left;
    for (const int node : {1, 3, 4})
        if (node != buddy) left.push_back(node);
    c.new_step(7, 1, left);
    ranks = begin(c, 7, left, 1);
    // One of them may lack nothing; together they begin nothing.
    const auto answers = ask_all(ranks, "rows_restart"), errors = ask_all(ranks, "error"),
               saved = ask_all(ranks, "rows_save 2");
    int without = 0;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        CAPTURE(rank, answers[rank], errors[rank]);
        if (answers[rank] == BCK_OK) continue;
        ++without;
        CHECK(answers[rank] == not_restored(BCK_E_LAYOUT));
        CHECK(errors[rank].find("tensor \"table\" has no part at") != std::string::npos);
        CHECK(saved[rank] == BCK_E_STALE);
    }
    CHECK(without != 0);
    CHECK(c.session(left[0], 7)["committed"]["step"] == 1);
}

}  // namespace test_ckptd_worlds
