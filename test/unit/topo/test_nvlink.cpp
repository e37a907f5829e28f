// SPDX-License-Identifier: BSD-3-Clause
//
// Hosts that share NVLink, as the trays of an NVL72 do: a tier below the leaf.
#include <set>

#include <banyan/topo/capacity.hpp>
#include <banyan/topo/snapshot.hpp>
#include <banyan/topo/traffic.hpp>
#include <catch2/catch.hpp>

#include "fixtures.hpp"

namespace test_nvlink {

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

/// Two leaf groups, each of two racks of 18 trays.
fabric racks() {
    auto f = groups_of({36, 36});
    for (std::uint32_t h = 0; h < f.hosts.size(); ++h)
        f.hosts[h].nvlink_domain = "rack" + std::to_string(h / 18);
    number_nvlink_domains(f);
    f.tier_cost = tier_costs(f);
    return f;
}

/// So many of each rack.
std::vector<std::uint32_t> free_in_racks(const std::vector<std::uint32_t>& counts) {
    std::vector<std::uint32_t> out;
    for (std::uint32_t rack = 0; rack < counts.size(); ++rack)
        for (std::uint32_t i = 0; i < counts[rack]; ++i) out.push_back(rack * 18 + i);
    return out;
}

std::set<std::uint32_t> racks_of(const std::vector<std::uint32_t>& hosts) {
    std::set<std::uint32_t> out;
    for (const auto h : hosts) out.insert(h / 18);
    return out;
}

double above_nvlink(const fabric& f, const request& r, const placement& p, dimension d) {
    for (const auto& c : cost_of(f, r, p).dimensions)
        if (c.dim == d) return c.bytes[tier::leaf] + c.bytes[tier::spine] + c.bytes[tier::core];
    return 0;
}

request trays(const char* dims, std::uint32_t nodes, std::uint32_t spares = 0) {
    return make_request(parse_shape(dims).value(), nodes + spares, 4, spares).value();
}

}  // namespace

TEST_CASE("hosts of one NVLink domain meet below the leaf", "[topo][nvlink]") {
    const auto f = racks();
    CHECK(tier_between(f, 0, 17) == tier::nvlink);
    CHECK(tier_between(f, 0, 18) == tier::leaf);
    CHECK(f.tier_cost[tier::leaf] > 1);
    CHECK(f.tier_cost[tier::spine] > f.tier_cost[tier::leaf]);
    // A domain of one host joins nothing, and one in two leaf groups is two.
    auto g = groups_of({2, 2});
    for (const auto h : {0u, 1u, 2u}) g.hosts[h].nvlink_domain = "a";
    number_nvlink_domains(g);
    CHECK(tier_between(g, 0, 1) == tier::nvlink);
    CHECK(tier_between(g, 1, 2) == tier::spine);
    CHECK(g.hosts[2].nvlink == none);
    // As before where there is none.
    CHECK(tier_costs(groups_of({2, 2}))[tier::leaf] == 0);
}

TEST_CASE("tensor and expert groups stay in an NVLink domain", "[topo][nvlink]") {
    const auto f = racks();
    // One rack holds all of it.
    const auto tp = trays("tp=8,dp=9", 18);
    CHECK(racks_of(place(f, free_in_racks({17, 18, 18, 10}), tp).value().nodes).size() == 1);
    // None does, and odd numbers are free in each: a tray of each is left over.
    const auto wide = trays("tp=8,pp=2,dp=6", 24);
    const auto p = place(f, free_in_racks({13, 13, 0, 0}), wide).value();
    CHECK(above_nvlink(f, wide, p, dimension::tp) == 0);
    const auto experts = trays("tp=4,ep=16,dp=2", 32);
    const auto q = place(f, free_in_racks({17, 16, 9, 17}), experts).value();
    CHECK(above_nvlink(f, experts, q, dimension::ep) == 0);
    // Racks of one leaf group before racks of two.
    const auto two = trays("tp=8,dp=16", 32);
    CHECK(spread_of(f, two, place(f, free_in_racks({10, 18, 16, 16}), two).value()).groups.size() == 1);
}

TEST_CASE("spares and replacements come from the same NVLink domain", "[topo][nvlink]") {
    const auto f = racks();
    const auto r = trays("tp=8,dp=4", 8, 2);
    const auto p = place(f, free_in_racks({9, 12, 8, 8}), r).value();
    auto all = p.nodes;
    all.insert(all.end(), p.spares.begin(), p.spares.end());
    CHECK(racks_of(all).size() == 1);
    placement before;
    before.nodes = {0, 1};
    before.buddies = {1, 0};
    const std::vector<std::uint32_t> lost{1}, others{20, 40, 5};
    CHECK(swap(f, before, lost, others).value().nodes[1] == 5);
}

TEST_CASE("hosts without NVLink beside such that share it", "[topo][nvlink]") {
    auto f = racks();
    for (std::uint32_t h = 36; h < 72; ++h) f.hosts[h].nvlink_domain.clear();
    number_nvlink_domains(f);
    const auto different = [&](const request& r) {
        const auto nodes = place(f, all_hosts(f), r).value().nodes;
        return std::set<std::uint32_t>(nodes.begin(), nodes.end()).size();
    };
    CHECK(different(trays("tp=4,pp=4,dp=4", 16)) == 16);
    // As many of them as the job needs: spares do not drive it to hosts that share no NVLink.
    const auto spared = place(f, free_in_racks({4, 4, 8, 0}), trays("tp=8,pp=2", 4, 4)).value();
    CHECK(above_nvlink(f, trays("tp=8,pp=2", 4, 4), spared, dimension::tp) == 0);
    for (const auto h : spared.spares) CHECK(h < 36);
    // More than the racks hold.
    CHECK(different(trays("tp=4,pp=4,dp=17", 68)) == 68);
}

}  // namespace test_nvlink
