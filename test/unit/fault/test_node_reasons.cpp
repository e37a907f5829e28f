// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes that somebody else has out already: whose reason is replaced, and whose stays.
#include <catch2/catch.hpp>

#include "test/unit/fault/controller_bench.hpp"

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

TEST_CASE("a node that banyan-sweep has drained is the incident's from then on", "[fault]") {
    controller_bench b;
    b.slurm.nodes["n03"] = {"n03", false, true, "banyan-sweep: links: 7 InfiniBand ports are active"};
    const auto reset = event_of(gpu_line(3, "119, Timeout"), wall_ms(), 5);
    std::vector<std::string> calls{"drain n03"};
    std::string did = "node_drain";
    SECTION("nobody is on it, and it stays drained") { (void)b.live({reset}); }
    SECTION("its jobs cannot leave it") {
        b.job(8, {"n03"}, std::nullopt);
        (void)b.live({reset});
    }
    SECTION("its job leaves it") {
        b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
        (void)b.live({reset});
        calls = {"down n03"};
        did = "node_down";
    }
    SECTION("it is to be restarted") {
        (void)b.live({b.xid79()});
        calls = {"down n03"};
        did = "node_down";
    }
    SECTION("it is down already") {
        b.slurm.nodes["n03"].down = true;
        (void)b.live({b.xid79()});
        calls = {"down n03"};
        did = "node_down";
    }
    CHECK(b.slurm.calls == calls);
    CHECK(b.slurm.nodes["n03"].drained);
    CHECK(b.slurm.nodes["n03"].reason.starts_with("banyan: gpu: Xid "));
    const auto got = b.live({});
    REQUIRE(got.size() == 1);
    CHECK(got[0].node_out_ms != 0);
    CHECK(results_of(got[0], did).starts_with("done: \"banyan: gpu: Xid "));
    CHECK(b.slurm.calls == calls);
}

TEST_CASE("a fault that goes on, on a node that somebody has out, is left alone once", "[fault]") {
    controller_bench b;
    std::string what = "node_drain", said = "left alone: the node has the reason \"fan test\"";
    b.slurm.nodes["n03"] = {"n03", false, true, "fan test"};
    SECTION("an administrator") {}
    SECTION("another incident") {
        b.slurm.nodes["n03"].reason = "banyan: gpu: Xid 48 GPU 1 [f00099]";
        said = "nothing to do: the node is out already (\"banyan: gpu: Xid 48 GPU 1 [f00099]\")";
    }
    SECTION("an administrator, with a job that stays") {
        b.job(8, {"n03"}, std::nullopt);
        what = "job";
        said = "job 8 was placed without a plan: the jobs of the node stay on it";
    }
    const auto begin = wall_ms() - 300'000;
    life now(b);
    for (std::uint64_t minute = 0; minute < 5; ++minute) {
        now.take({event_of(gpu_line(3, "119, Timeout"), begin + static_cast<std::int64_t>(minute) * 60'000,
                           minute + 1)});
        REQUIRE(now.until([&] { return now.first() && now.first()->lines == minute + 1 && now.is_done(); }));
    }
    CHECK(now.c.incidents().all().size() == 1);
    CHECK(results_of(*now.first(), what) == said);
    CHECK(b.slurm.calls.empty());
}

TEST_CASE("an incident keeps what was done, and of what came to nothing not all", "[fault]") {
    incident i;
    for (std::size_t n = 0; n < 2 * incident::max_actions; ++n)
        i.add_action({"node_down", "n03", 1, "held back: " + std::to_string(n)}, false);
    CHECK(i.actions.size() == incident::max_actions);
    CHECK(i.actions.back().result == "held back: " + std::to_string(2 * incident::max_actions - 1));
    i.add_action({"node_down", "n03", 2, "done"}, true);
    CHECK(i.actions.back().result == "done");
}
