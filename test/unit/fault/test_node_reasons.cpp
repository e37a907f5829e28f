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
