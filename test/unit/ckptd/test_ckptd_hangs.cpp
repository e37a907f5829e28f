// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that hangs is named on all nodes of its job.
#include <csignal>
#include <string>
#include <vector>

#include <banyan/ckpt.h>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "cluster.hpp"

namespace test_ckptd_hangs {

using namespace ckptd_test;

namespace {

constexpr std::uint64_t job = 7;

json hung(const cluster& c, int node) { return c.session(node, job).value("hung", json()); }

/// Two ranks on each of two nodes, which have trained for six steps.
std::vector<rank_process> trained(const cluster& c, const char* by) {
    c.open(c.request(job, 2, 2, "", 0));
    c.new_step(job, 0, {1, 2});
    auto ranks = start_ranks(c, job, {1, 2}, 2, 100'000);
    all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
    for (int step = 1; step <= 6; ++step) {
        all_are(ask_all(ranks, fmt::format("save {}", step)), BCK_OK);
        if (std::string(by) == "heartbeats") ask_all(ranks, fmt::format("beat {} 1", step));
    }
    return ranks;
}

}  // namespace

TEST_CASE("a rank that is stopped is named, and no longer once it goes on", "[ckptd]") {
    cluster c({2, "", {}});
    auto ranks = trained(c, "saves");
    pass(9s);
    CHECK(hung(c, 1).is_null());
    ::kill(ranks[3].pid(), SIGSTOP);
    for (const int node : {1, 2}) {
        REQUIRE(eventually([&] { return !hung(c, node).is_null(); }));
        CHECK(hung(c, node)["ranks"] == json::array({3}));
        CHECK(
            hung(c, node)["text"].get<std::string>().starts_with("rank 3 on n2 hangs: stopped by a signal"));
    }
    ::kill(ranks[3].pid(), SIGCONT);
    all_are(ask_all(ranks, "save 7"), BCK_OK);
    for (const int node : {1, 2}) CHECK(eventually([&] { return hung(c, node).is_null(); }));
}

TEST_CASE("a rank that is behind by its heartbeat is named", "[ckptd]") {
    cluster c({2, "", {}});
    auto ranks = trained(c, "heartbeats");
    for (auto& rank : ranks)
        if (&rank != &ranks[1]) rank.ask("beat 7 1");
    REQUIRE(eventually([&] { return !hung(c, 2).is_null(); }));
    CHECK(hung(c, 2)["ranks"] == json::array({1}));
    CHECK(hung(c, 2)["step"] == 6);
}

TEST_CASE("nobody is named where a node does not answer, or a rank works", "[ckptd]") {
    cluster c({2, "", {}});
    auto ranks = trained(c, "heartbeats");
    for (int rank = 0; rank < 3; ++rank) ranks[static_cast<std::size_t>(rank)].ask("beat 7 1");
    const bool works = GENERATE(true, false);
    if (works)
        ranks[3].ask("beat 6 2");  // it was never there before
    else
        c.kill(2, SIGSTOP);
    pass(20s);
    CHECK(hung(c, 1).is_null());
    if (!works) c.kill(2, SIGCONT);
}

}  // namespace test_ckptd_hangs
