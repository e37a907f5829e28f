// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes of a job's earlier runs whose answers come late, that are forgotten too soon, or that nobody tells
// that the job is over.
#include <csignal>

#include "requeues.hpp"

namespace test_ckptd_late {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;

namespace {

/// Step 15 has its second copies on nodes 3, 5 and 2, and the first of these has lost its memory: node 5 is
/// the only one with the shards of ranks 0 and 1.
void lose_one(const cluster& c, cluster& of, const run& before) {
    train_and_leave(c, before, 11, 15);
    of.kill(3, SIGKILL);
    REQUIRE(of.start(3));
}

}  // namespace

TEST_CASE("a late former node is waited for where a step is not whole without it", "[ckptd]") {
    cluster c({5, "restore_timeout = \"10s\"\n", {}});
    run l{.nodes = {3, 5, 2}};
    if (GENERATE(false, true)) {
        l.storage = c.dir() + "/store";
        l.flush = 11;  // step 11 is in storage
    }
    lose_one(c, c, l);
    l.nodes = {1, 3, 2};
    l.restart = 1;
    l.former = {5};
    c.kill(5, SIGSTOP);
    auto ranks = begin_run(c, l);
    for (auto& r : ranks) r.say("restart");
    SECTION("by more than a second") {
        pass(3s);
        c.kill(5, SIGCONT);
        for (auto& r : ranks) CHECK(r.hear() == found_step{.step = 15});
    }
    SECTION("for so long that the ranks hear which node it is, and nothing older is taken") {
        for (auto& r : ranks) {
            CHECK(r.hear() == not_restored(BCK_E_REFUSED));
            const auto why = r.ask("error");
            INFO(why);
            CHECK(why.find("step 15 has had its second copies, and is not whole without n5") !=
                  std::string::npos);
        }
        // Whoever asks again hears of what there is then.
        c.kill(5, SIGCONT);
        const auto all_begin = [&] {
            const auto said = ask_all(ranks, "restart");
            return std::ranges::all_of(said, [](const auto& a) { return a == found_step{.step = 15}; });
        };
        CHECK(eventually(all_begin));
    }
    SECTION("and where its memory is lost, too, the older one is taken") {
        pass(2s);
        c.kill(5, SIGCONT);
        c.kill(5, SIGKILL);
        REQUIRE(c.start(5));
        for (auto& r : ranks) {
            const auto said = r.hear();
            CHECK((l.flush == 0 ? said == not_restored(BCK_E_NOTFOUND) : said == found_step{.step = 11}));
        }
    }
}

TEST_CASE("between the prologs of a requeue and its step nobody forgets where the job ran", "[ckptd]") {
    cluster c({4, "", {}});
    train_and_leave(c, {.nodes = {1, 2}}, 1, 5);
    train_and_leave(c, {.nodes = {3, 4}, .restart = 1, .former = {1, 2}}, 6, 10);
    auto ranks = begin_run(c, {.nodes = {1, 2}, .restart = 2, .former = {3, 4}, .gap = 3s});
    all_are(ask_all(ranks, "restart"), found_step{.step = 10});
}

TEST_CASE("a node that the job has left begins its lease though nobody tells it", "[ckptd]") {
    cluster c({4, "retention = \"5s\"\n", {}});
    auto r = c.request(7, 3, 1, "", 0);
    CHECK(c.open(r).empty());
    c.new_step(7, 0, {1, 2, 3});
    {
        auto ranks = start_ranks(c, 7, {1, 2, 3}, 1, 100'000);
        all_are(ask_all(ranks, "restart"), not_restored(BCK_E_NOTFOUND));
        all_are(ask_all(ranks, "save 1"), BCK_OK);
        all_are(ask_all(ranks, "wait 1 2 9000"), BCK_OK);
    }
    // Between two steps of the job nothing is heard of its processes, but of its daemons.
    pass(30s);
    for (const int node : {1, 2, 3}) CHECK(c.session(node, 7)["state"] == "open");
    c.new_step(7, 1, {1, 2, 4});
    {
        auto ranks = start_ranks(c, 7, {1, 2, 4}, 1, 100'000);
        all_are(ask_all(ranks, "restart"), found_step{.step = 1});
    }
    // It ends before a step of that launch has its second copies; node 3 is none of its nodes any more.
    for (const int node : {1, 2, 4}) REQUIRE(ckpt::session_detach(c.socket(node), 7, 5s));
    CHECK(eventually([&] { return c.session(3, 7).is_null(); }));
}

}  // namespace test_ckptd_late
