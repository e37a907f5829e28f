// SPDX-License-Identifier: BSD-3-Clause
//
// A session that is being opened waits for memory for many seconds. What comes meanwhile, a requeue or the
// job's end, is not undone by how that wait ends.
#include <future>

#include <catch2/catch.hpp>

#include "cluster.hpp"
#include "gate.hpp"

namespace test_ckptd_opening {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;

namespace {

constexpr std::uint64_t before = 7, waiting = 8, beside = 9;

// Job `before` has ended and writes to storage that stands still: its memory goes to others when it is done.
class full_node {
  public:
    full_node() : c(options()) {
        c.open(c.request(before, 1, 1, c.dir() + "/store", 1000));
        c.new_step(before, 0, {1});
        auto ranks = start_ranks(c, before, {1}, 1, 5'000'000);
        all_are(ask_all(ranks, "save 1"), BCK_OK);
        all_are(ask_all(ranks, "wait 1 1 9000"), BCK_OK);
        for (auto& r : ranks) r.kill();
        REQUIRE(ckpt::session_detach(c.socket(1), before, 5s));
        REQUIRE(eventually([&] { return c.session(1, before)["state"] == "ending"; }));
    }
    /// A job that comes meanwhile: with it here there will be too little for the one that waits.
    void run_beside() {
        c.open(c.request(beside, 1, 1, "", 0));
        c.new_step(beside, 0, {1});
        others = start_ranks(c, beside, {1}, 1, 2'500'000);
        all_are(ask_all(others, "save 1"), BCK_OK);
    }
    /// Opens job `waiting`, which waits; its answer.
    std::future<banyan::result<ckpt::session_answer>> open_and_wait() {
        auto r = c.request(waiting, 1, 1, "", 0);
        r.self = c.name(1);
        r.bytes = 6'000'000;
        auto answer = std::async(std::launch::async, [at = c.socket(1), r = std::move(r)] {
            return ckpt::session_open(at, r, 60s);
        });
        REQUIRE(eventually([&] { return !c.session(1, waiting).is_null(); }));
        return answer;
    }
    void trains(std::uint64_t job) {
        c.new_step(job, 0, {1});
        auto ranks = start_ranks(c, job, {1}, 1, 100'000);
        all_are(ask_all(ranks, "save 1"), BCK_OK);
        all_are(ask_all(ranks, "wait 1 1 9000"), BCK_OK);
    }

    cluster::options options() const {
        auto o = g.on({1}, 1, "memory_limit = \"24M\"\n");
        o.arguments = {"--exit-when-idle"};
        return o;
    }

    const gate g;
    cluster c;
    std::vector<rank_process> others;
};

}  // namespace

TEST_CASE("a requeue that was let in outlives the wait of the run before it", "[ckptd]") {
    full_node n;
    auto first = n.open_and_wait();
    n.run_beside();
    auto requeued = n.c.request(waiting, 1, 1, "", 0);
    requeued.restart = 1;
    n.c.open(requeued);
    n.g.open();
    const auto answer = first.get();
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == banyan::errc::exhausted);
    REQUIRE_FALSE(n.c.session(1, waiting).is_null());
    CHECK(n.c.session(1, waiting)["restart"] == 1);
    n.trains(waiting);
}

TEST_CASE("what is opened after a close outlives the wait of what was closed", "[ckptd]") {
    full_node n;
    auto first = n.open_and_wait();
    n.run_beside();
    REQUIRE(ckpt::session_close(n.c.socket(1), waiting, false, 5s));
    n.c.open(n.c.request(waiting, 1, 1, "", 0));
    n.g.open();
    CHECK_FALSE(first.get());
    REQUIRE_FALSE(n.c.session(1, waiting).is_null());
    n.trains(waiting);
}

TEST_CASE("for a job that has left nobody's memory is taken, and nothing of it is remembered", "[ckptd]") {
    full_node n;
    const bool closed = GENERATE(true, false);
    auto first = n.open_and_wait();
    const auto at = n.c.socket(1);
    if (closed)
        REQUIRE(ckpt::session_close(at, waiting, false, 5s));
    else
        REQUIRE(ckpt::session_detach(at, waiting, 5s));
    n.g.open();
    CHECK_FALSE(first.get());
    CHECK(n.c.session(1, waiting).is_null());
    // It has its lease: a requeue of it finds its step in memory.
    REQUIRE_FALSE(n.c.session(1, before).is_null());
    CHECK(n.c.session(1, before)["committed"]["step"] == 1);
    REQUIRE(ckpt::session_close(at, before, false, 5s));
    CHECK(eventually([&] { return !ckpt::status(at, 1s); }));  // it is idle
}

TEST_CASE("where every open is refused nothing of the job is left", "[ckptd]") {
    full_node n;
    auto first = n.open_and_wait();
    auto requeued = n.c.request(waiting, 1, 1, "", 0);
    requeued.self = n.c.name(1);
    requeued.restart = 1;
    requeued.bytes = 6'000'000;
    auto second =
        std::async(std::launch::async, [&] { return ckpt::session_open(n.c.socket(1), requeued, 60s); });
    CHECK(eventually([&] {
        const auto s = n.c.session(1, waiting);
        return !s.is_null() && s["restart"] == 1;
    }));
    n.run_beside();
    n.g.open();
    CHECK_FALSE(first.get());
    CHECK_FALSE(second.get());
    CHECK(n.c.session(1, waiting).is_null());
}

}  // namespace test_ckptd_opening
