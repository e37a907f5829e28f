// SPDX-License-Identifier: BSD-3-Clause
//
// A job gets equal hosts, the best there are.
#include <algorithm>

#include <banyan/topo/capacity.hpp>
#include <catch2/catch.hpp>

#include "dump_writer.hpp"
#include "fixtures.hpp"

namespace test_equal_hosts {

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

/// Three groups of 18 with four rails of 200, and one of 16, which any small job would fit best, that is
/// worse.
fabric with_a_weak_group(std::uint16_t rails, double gbps) {
    auto f = groups_of({18, 18, 18, 16});
    for (auto& h : f.hosts) {
        h.rails = h.leaf_group == 3 ? rails : 4;
        h.gbps = h.leaf_group == 3 ? gbps : 800;
    }
    return f;
}

std::size_t from_weak(const fabric& f, const placement& p) {
    return static_cast<std::size_t>(
        std::count_if(p.nodes.begin(), p.nodes.end(), [&](auto h) { return f.hosts[h].leaf_group == 3; }));
}

std::vector<std::uint32_t> of_group(const fabric& f, std::uint32_t group) {
    return f.leaf_groups[group].hosts;
}

}  // namespace

TEST_CASE("the best hosts that are enough, whatever fits tighter", "[topo]") {
    for (const auto& f : {with_a_weak_group(2, 200), with_a_weak_group(4, 400), with_a_weak_group(2, 400)})
        for (const auto nodes : {4u, 8u, 16u}) {
            const auto r = make("pp=2,dp=" + std::to_string(nodes / 2), nodes);
            const auto p = place(f, all_hosts(f), r).value();
            CHECK(from_weak(f, p) == 0);
            CHECK(spread_of(f, r, p).unlike.empty());
            // All others are busy, or the user asked for these.
            const auto weak = place(f, of_group(f, 3), r).value();
            CHECK(from_weak(f, weak) == nodes);
            CHECK(spread_of(f, r, weak).unlike.empty());
        }
}

TEST_CASE("equal weaker hosts before a mixture, and the mixture is told", "[topo]") {
    const auto f = with_a_weak_group(2, 200);
    auto free = of_group(f, 0);
    free.resize(4);
    const auto weak = of_group(f, 3);
    free.insert(free.end(), weak.begin(), weak.end());
    const auto equal = make("dp=8", 8);
    CHECK(from_weak(f, place(f, free, equal).value()) == 8);
    const auto more = make("dp=18", 18);
    const auto p = place(f, free, more).value();
    CHECK(spread_of(f, more, p).unlike.size() == 18 - from_weak(f, p));
}

TEST_CASE("a job stays on an island that holds it, though better hosts are on two", "[topo]") {
    auto f = groups_of({8, 8, 8});
    f.leaf_groups[2].island = 1;
    f.wan = {{0, 1, 100}};
    for (auto& h : f.hosts) h.gbps = h.leaf_group == 1 ? 400 : 800;
    const auto p = place(f, all_hosts(f), make("dp=12", 12)).value();
    for (const auto h : p.nodes) CHECK(f.hosts[h].leaf_group < 2);
    const auto few = place(f, all_hosts(f), make("dp=8", 8)).value();
    for (const auto h : few.nodes) CHECK(f.hosts[h].gbps == 800);
}

TEST_CASE("of two parts that nothing joins the one with the better hosts", "[topo]") {
    auto f = groups_of({8, 8});
    f.leaf_groups[1].island = 1;
    for (auto& h : f.hosts) h.gbps = h.leaf_group == 0 ? 400 : 800;
    const auto p = place(f, all_hosts(f), make("dp=8", 8)).value();
    for (const auto h : p.nodes) CHECK(f.hosts[h].gbps == 800);
}

TEST_CASE("what the fabric does not show is the caller's to say", "[topo]") {
    const auto f = groups_of({8, 4});
    std::vector<std::uint32_t> gpus(f.hosts.size(), 1);
    for (std::uint32_t h = 0; h < 6; ++h) gpus[h] = 0;
    const auto r = make("dp=4", 4);
    const auto free = all_hosts(f);
    const auto p = place(f, candidates{free, {}, {}, gpus}, r).value();
    for (const auto h : p.nodes) CHECK(h < 6);
    const auto all = make("dp=12", 12);
    const auto mixed = place(f, candidates{free, {}, {}, gpus}, all).value();
    CHECK(spread_of(f, all, mixed).unlike.empty());
    CHECK(spread_of(f, all, mixed, gpus).unlike.size() == 6);
}

TEST_CASE("weaker hosts before such as are about to fail, and shards before both", "[topo]") {
    const auto f = with_a_weak_group(2, 200);
    std::vector<float> risk(f.hosts.size());
    for (std::uint32_t h = 0; h < risk.size(); ++h)
        if (f.hosts[h].leaf_group < 3) risk[h] = 0.9f;
    const auto r = make("dp=8", 8);
    const auto free = all_hosts(f);
    CHECK(from_weak(f, place(f, candidates{free, {}, risk}, r).value()) == 8);
    const auto shards = of_group(f, 3);
    CHECK(from_weak(f, place(f, candidates{free, shards, {}}, r).value()) == 8);
}

TEST_CASE("a host is as fast as its slowest rail", "[topo]") {
    auto f = rail_fabric(2, 4, 2, 2).model();
    const auto whole = f.hosts[0].gbps;
    CHECK(whole == 2 * gbps(f.hcas[f.hosts[0].hcas[0]].rate));
    f.hcas[f.hosts[0].hcas[1]].rate.lane_gbps10 /= 2;
    mark_slow_hosts(f);
    CHECK(f.hosts[0].gbps == whole / 2);
    CHECK(f.hosts[1].gbps == whole);
}

}  // namespace test_equal_hosts
