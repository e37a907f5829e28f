// SPDX-License-Identifier: BSD-3-Clause
#include <banyan/topo/capacity.hpp>
#include <banyan/topo/traffic.hpp>
#include <catch2/catch.hpp>

#include "dump_writer.hpp"
#include "fixtures.hpp"

namespace test_cost {

using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

const dimension_cost& of(const placement_cost& c, dimension d) {
    for (const auto& each : c.dimensions)
        if (each.dim == d) return each;
    FAIL("the dimension is not in the cost");
    return c.dimensions[0];
}

}  // namespace

TEST_CASE("bytes per edge follow from the model", "[topo]") {
    model_size m;
    m.hidden = 1000;
    m.layers = 8;
    m.sequence = 100;
    m.micro = 4;
    const auto t = traffic_of(parse_shape("tp=2,pp=4,dp=3").value(), m);
    // 2 bytes x 4 sequences x 100 tokens x 1000 / tp
    CHECK(t[dimension::pp] == 400'000);
    // 2 (d-1)/d x 2 bytes x 12 h^2 x 2 layers / tp
    CHECK(t[dimension::dp] == Approx(2 * 2 / 3.0 * 2 * 12e6 * 2 / 2));
    CHECK(t[dimension::cp] == 0);
}

TEST_CASE("what crosses which tier", "[topo]") {
    const auto f = groups_of({4, 4, 4, 4}, 2);
    const auto r = make("pp=2,dp=4", 8);
    placement p;
    p.nodes = {0, 1, 2, 3, 4, 5, 6, 7};  // pairs of a pipeline side by side
    const auto c = cost_of(f, r, p);
    CHECK(of(c, dimension::pp).over_leaf_groups == 0);
    CHECK(of(c, dimension::dp).over_leaf_groups == 2);
    CHECK(of(c, dimension::dp).over_spine_groups == 0);
    CHECK(of(c, dimension::dp).largest_spread == 2);
    // Each of the two rings leaves either group once.
    const auto dp = traffic_of(r.dims, model_size{})[dimension::dp];
    CHECK(c.above_leaf() == Approx(4 * dp));
    // The same job over the core.
    p.nodes = {0, 1, 2, 3, 8, 9, 10, 11};
    const auto far = cost_of(f, r, p);
    CHECK(far.bytes[tier::core] == Approx(4 * dp));
    CHECK(of(far, dimension::dp).over_spine_groups == 2);
}

TEST_CASE("the busiest uplink is counted by rail", "[topo]") {
    rail_fabric d(2, 4, 2, 2);
    const auto f = d.model();
    const auto r = make("tp=2,dp=8", 8);
    const auto p = place(f, all_hosts(f), r).value();
    const auto c = cost_of(f, r, p);
    const auto dp = traffic_of(r.dims, model_size{})[dimension::dp];
    // One ring on each rail leaves each group once, over two uplinks.
    CHECK(c.busiest_uplink == Approx(dp / 2));
}

TEST_CASE("context parallel groups, which send most, stay in one leaf group", "[topo]") {
    const auto f = groups_of({6, 6, 6, 6});
    const auto r = make("cp=2,pp=2,dp=5", 20);
    const auto c = cost_of(f, r, place(f, all_hosts(f), r).value());
    CHECK(of(c, dimension::cp).over_leaf_groups == 0);
}

TEST_CASE("spine groups are part of the choice", "[topo]") {
    // Large blocks under different spines, and smaller ones together under one.
    const auto f = groups_of({4, 2, 4, 2, 4, 4}, 2);
    const auto r = make("pp=2,dp=4", 8);
    const auto c = cost_of(f, r, place(f, all_hosts(f), r).value());
    CHECK(of(c, dimension::dp).over_spine_groups == 0);
}

TEST_CASE("with a model's bytes and a thin core, rings are whole under a spine and cut at leaves", "[topo]") {
    auto f = groups_of({16, 16, 8, 1, 7, 4});
    const std::uint32_t spine[] = {0, 1, 1, 1, 2, 2};
    for (std::size_t g = 0; g < std::size(spine); ++g) f.leaf_groups[g].spine_group = spine[g];
    f.tier_cost = {0, 0, 0, 1, 8, 64};
    for (const auto* shape : {"tp=8,pp=4,dp=11", "tp=8,dp=11,pp=4"}) {
        auto r = make(shape, 44);
        r.model = model_size{};
        const auto c = cost_of(f, r, place(f, all_hosts(f), r).value());
        CHECK(of(c, dimension::dp).over_spine_groups == 0);
        CHECK(of(c, dimension::dp).over_leaf_groups > 0);
    }
}

TEST_CASE("risky hosts and those that lack a rail come last", "[topo]") {
    rail_fabric d(2, 4, 2, 2);
    d.forget(d.leaves[0][1], 1);
    d.forget(d.hcas[0][0][1], 1);
    const auto f = d.model();
    const auto lame = find_host(f, "g0n00");
    const auto r = make("pp=3", 3);
    auto used = [&](const std::vector<float>& risk) {
        const auto p = place(f, candidates{all_hosts(f), {}, risk}, r).value();
        return std::find(p.nodes.begin(), p.nodes.end(), lame) != p.nodes.end();
    };
    CHECK_FALSE(used({}));
    // The other group is worse: it has nothing but risky hosts.
    std::vector<float> risk(f.hosts.size());
    for (std::uint32_t h = 0; h < f.hosts.size(); ++h)
        if (f.hosts[h].leaf_group == 1) risk[h] = 0.9f;
    CHECK_FALSE(used(risk));
    risk[find_host(f, "g0n01")] = 0.9f;
    const auto p = place(f, candidates{all_hosts(f), {}, risk}, r).value();
    CHECK(p.nodes.size() == 3);
}

TEST_CASE("a host with a slow link comes last", "[topo]") {
    auto f = rail_fabric(2, 4, 2, 2).model();
    const auto slow = f.leaf_groups[0].hosts[0];
    f.hcas[f.hosts[slow].hcas[1]].rate.lane_gbps10 /= 2;
    mark_slow_hosts(f);
    for (std::uint32_t h = 0; h < f.hosts.size(); ++h) CHECK(f.hosts[h].slow == (h == slow));
    const auto p = place(f, all_hosts(f), make("pp=4", 4)).value();
    CHECK(f.hosts[p.nodes[0]].leaf_group == 1);
}

TEST_CASE("what --train-model takes", "[topo]") {
    CHECK(parse_model("hidden=4096,layers=32").value().hidden == 4096);
    CHECK(parse_model("layers=32").value().sequence == model_size{}.sequence);
    CHECK(parse_model("hiden=1").error().hint.find("hidden") != std::string::npos);
    CHECK_FALSE(parse_model("hidden=0"));
    CHECK_FALSE(parse_model("hidden=99999999999999999999"));
    CHECK_FALSE(parse_model(""));
}

}  // namespace test_cost
