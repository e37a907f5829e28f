// SPDX-License-Identifier: BSD-3-Clause
//
// What is done to the nodes of an NVLink domain, while its nodes tell one after the other.
#include <algorithm>

#include <catch2/catch.hpp>

#include "fault/history/history.hpp"
#include "test/unit/fault/controller_bench.hpp"
#include "test/unit/fault/domain_bench.hpp"

namespace test_domain_actions {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;
using namespace std::chrono_literals;

namespace {

event told_by(const std::string& node, const std::string& line, std::uint64_t position) {
    auto e = event_of(gpu_line(3, line), clock::wall_ms(), position, node);
    e.nvlink_domain = one_domain;
    return e;
}

bool has_switches(const engine& e) {
    return std::ranges::any_of(e.all(), [](const auto& p) { return is_an_nvlink_domain(p.second); });
}

}  // namespace

TEST_CASE("of an NVLink domain whose switch fails no node goes out", "[fault][domain]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, 4u);
    std::vector<event> storm;
    for (const auto* line : {&fell_149, &wants_reset})
        for (const auto* node : {"n01", "n02", "n03", "n04"})
            storm.push_back(told_by(node, *line, storm.size()));
    const auto known = b.live(std::move(storm));
    REQUIRE(known.size() == 2);
    CHECK(was_folded(known[0]));
    CHECK(known[0].actions.empty());
    CHECK(known[1].reason == "nvlink-domain");
    CHECK(known[1].rule == "inspect");
    CHECK(known[1].node_out_ms == 0);
    CHECK(known[1].lines == 8);
    for (const auto& [name, node] : b.slurm.nodes) CHECK_FALSE((node.down || node.drained));
}

TEST_CASE("a node that is to go out stays when its domain's switches are the culprit", "[fault][domain]") {
    controller_bench b;
    gate slurm;
    b.slurm.when_jobs = [&] { slurm(); };
    life l(b);
    l.take({told_by("n01", fell_149, 1)});
    REQUIRE(l.until([&] { return slurm.reached(); }));
    const auto& limits = l.c.look().limits;
    CHECK(limits.taken_since(0) == 1);
    SECTION("its slot of the hour is the next one's") {
        l.take({told_by("n02", fell_149, 2), told_by("n03", fell_149, 3)});
        REQUIRE(l.until([&] { return has_switches(l.c.incidents()); }));
        CHECK(limits.taken_since(0) == 0);
        slurm.open();
        REQUIRE(l.until([&] { return l.is_done(); }));
        CHECK(l.until([&] { return was_folded(*l.first()); }));
        CHECK(b.slurm.calls.empty());
        CHECK(l.first()->actions.empty());
    }
    SECTION("and the node of the GPU that is gone goes out in its place") {
        l.take({told_by("n04", off_the_bus, 2)});
        REQUIRE(l.until([&] { return was_folded(*l.first()); }));
        slurm.open();
        REQUIRE(l.until([&] { return l.c.incidents().all().at(2).node_out_ms != 0; }));
        CHECK(b.slurm.calls == std::vector<std::string>{"down n04"});
        CHECK(limits.taken_since(0) == 1);
        CHECK(limits.counts("n04"));
        CHECK(l.first()->node_out_ms == 0);
    }
}

TEST_CASE("a node that is going out has gone out for its own incident", "[fault][domain]") {
    controller_bench b;
    gate slurm;
    b.slurm.when_set = [&] { slurm(); };
    life l(b);
    l.take({told_by("n01", fell_149, 1)});
    REQUIRE(l.until([&] { return slurm.reached(); }));
    {
        // Written down before Slurm was asked, so that the next controller knows.
        std::string warning;
        auto kept = history::open(b.settings.history, warning);
        REQUIRE(kept);
        const auto first = kept->find(1);
        REQUIRE((first && *first));
        CHECK((*first)->begun);
    }
    l.take({told_by("n02", fell_149, 2), told_by("n03", fell_149, 3)});
    REQUIRE(l.until([&] { return has_switches(l.c.incidents()); }));
    l.take({told_by("n04", off_the_bus, 4)});
    REQUIRE(l.until([&] { return l.c.incidents().all().size() == 3; }));
    slurm.open();
    REQUIRE(l.until([&] { return l.is_done() && l.c.incidents().all().at(3).node_out_ms != 0; }));
    std::ranges::sort(b.slurm.calls);  // of two nodes, either first
    CHECK(b.slurm.calls == std::vector<std::string>{"down n04", "drain n01"});
    const auto& all = l.c.incidents().all();
    CHECK(all.at(1).object.node == "n01");
    CHECK(all.at(1).node_out_ms != 0);
    CHECK(all.at(1).closed_ms == 0);
    CHECK(was_folded(all.at(2)));
    CHECK(all.at(2).node_out_ms == 0);
    CHECK(all.at(3).find_action("beside", "f00001") != nullptr);
    CHECK(results_of(all.at(1), "node_drain").starts_with("done: "));
    CHECK(l.c.look().limits.taken_since(0) == 2);
}

}  // namespace test_domain_actions
