// SPDX-License-Identifier: BSD-3-Clause
//
// A buddy that does not answer holds nobody up: saves that find no buffer are skipped at once, long before
// its silence is certain.
#include <csignal>

#include <catch2/catch.hpp>

#include "cluster.hpp"

namespace test_ckptd_stall {

using namespace ckptd_test;

namespace {

constexpr auto takes_no_copies = "node n2 does not take copies";

// By then the daemons know how long a copy and a commit take.
constexpr int usual_saves = 8;

void save_as_usual(std::vector<rank_process>& ranks) {
    for (int step = 1; step <= usual_saves; ++step) {
        all_are(ask_all(ranks, "save " + std::to_string(step)), BCK_OK);
        all_are(ask_all(ranks, "wait " + std::to_string(step) + " 2 10000"), BCK_OK);
    }
}

// The copy is still on its way, and has no vote yet; and yet the ranks know that they need not wait for it.
bool is_stalled_by_a_copy(const cluster& c, std::uint64_t job) {
    const auto s = c.session(1, job);
    return s["stalled"].get<bool>() && s["pending"].get<int>() > 0;
}

struct no_buffer {
    std::uint64_t step;
    bool was_stalled = false;
};

// The step that finds none, and whether it was skipped for that.
no_buffer save_until_full(rank_process& rank, std::uint64_t step) {
    for (const auto first = step; step < first + 4; ++step)
        if (rank.ask("save " + std::to_string(step)) != BCK_OK)
            return {step, rank.ask("error").find("waits for other nodes") != std::string::npos};
    return {step};
}

bool save_until_replicated(const cluster& c, std::uint64_t job, std::vector<rank_process>& ranks,
                           std::uint64_t step) {
    return eventually([&] {
        const auto next = std::to_string(step++);
        all_are(ask_all(ranks, "save " + next), BCK_OK);
        all_are(ask_all(ranks, "wait " + next + " 1 10000"), BCK_OK);
        return c.session(1, job)["replicated"].get<bool>();
    });
}

}  // namespace

TEST_CASE("a buddy that hangs: saves are skipped at once, and go on when it answers", "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(31, 2, 1, "", 0));
    auto ranks = start_ranks(c, 31, {1, 2});
    save_as_usual(ranks);
    c.kill(2, SIGSTOP);
    all_are(ask_all(ranks, "save 9"), BCK_OK);
    CHECK(eventually([&] { return is_stalled_by_a_copy(c, 31); }));
    const auto full = save_until_full(ranks[0], 10);
    CHECK(full.was_stalled);
    c.kill(2, SIGCONT);
    // Nothing was lost of what was sealed, and the next one has its second copy again.
    for (std::uint64_t step = 10; step < full.step; ++step)
        CHECK(ranks[1].ask("save " + std::to_string(step)) == BCK_OK);
    all_are(ask_all(ranks, "wait " + std::to_string(full.step - 1) + " 1 10000"), BCK_OK);
    CHECK(eventually([&] { return !c.session(1, 31)["stalled"].get<bool>(); }));
    CHECK(save_until_replicated(c, 31, ranks, full.step + 1));
}

TEST_CASE("a buddy that hangs for long: the vote comes, the user is told, and it is asked until it is back",
          "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(32, 2, 1, "", 0));
    auto ranks = start_ranks(c, 32, {1, 2});
    save_as_usual(ranks);
    c.kill(2, SIGSTOP);
    all_are(ask_all(ranks, "save 9"), BCK_OK);
    CHECK(eventually([&] { return c.session(1, 32)["pending"] == 0; }));
    CHECK(eventually(
        [&] { return c.session(1, 32)["warning"].get<std::string>().starts_with(takes_no_copies); }));
    c.kill(2, SIGCONT);
    CHECK(ranks[0].ask("wait 9 1 10000") == BCK_OK);
    // That vote was final.
    CHECK(c.session(1, 32)["replicated"] == false);
    CHECK(ranks[0].ask("wait 9 2 300") == BCK_E_TIMEOUT);
    CHECK(save_until_replicated(c, 32, ranks, 10));
}

TEST_CASE("a buddy that is dead: saves are skipped at once, what was replicated is brought back", "[ckptd]") {
    cluster c({3, "", {}});
    c.open(c.request(33, 2, 1, "", 0));
    {
        auto ranks = start_ranks(c, 33, {1, 2});
        save_as_usual(ranks);
        ranks[1].kill();
        c.kill(2, SIGKILL);
        CHECK(ranks[0].ask("save 9") == BCK_OK);
        CHECK(eventually([&] { return is_stalled_by_a_copy(c, 33); }));
        CHECK(save_until_full(ranks[0], 10).was_stalled);
        CHECK(eventually([&] { return c.session(1, 33)["pending"] == 0; }));
        CHECK(c.session(1, 33)["stalled"] == true);
        CHECK(eventually(
            [&] { return c.session(1, 33)["warning"].get<std::string>().starts_with(takes_no_copies); }));
    }
    c.new_step(33, 1, {1, 3});
    auto again = start_ranks(c, 33, {1, 3});
    const auto restored = ask_all(again, "restart");
    CHECK(restored[0] == restored_state{.step = 8, .source = BCK_FROM_LOCAL});
    CHECK(restored[1] == restored_state{.step = 8, .source = BCK_FROM_PEER});
}

}  // namespace test_ckptd_stall
