// SPDX-License-Identifier: BSD-3-Clause
#include <banyan/topo/traffic.hpp>
#include <catch2/catch.hpp>

#include "fixtures.hpp"

namespace test_routing {

using namespace banyan::topo;
using namespace banyan::topo::test;

TEST_CASE("forwarding tables lead from every HCA to every other", "[topo]") {
    const auto f = model_of("ibnetdiscover.txt");
    const auto r = read_routing(fixture("dump_lfts.txt")).value();
    CHECK(r.ports.size() == 12);
    CHECK(r.skipped_lines == 0);
    const router paths(f, r);
    std::size_t over_spine = 0;
    for (const auto& a : f.hosts)
        for (const auto& b : f.hosts) {
            if (a.name == b.name) continue;
            // The same rail is one leaf away; another rail is over a spine.
            REQUIRE(paths.path(a.hcas[2], b.hcas[2]).size() == 2);
            over_spine += paths.path(a.hcas[2], b.hcas[3]).size() == 4;
        }
    CHECK(over_spine == 16 * 15);
    CHECK(read_routing(fixture("dump_fts.txt")).value().ports == r.ports);
}

TEST_CASE("tables that lead nowhere or round and round give no path", "[topo]") {
    const auto f = model_of("ibnetdiscover.txt");
    auto r = read_routing(fixture("dump_lfts.txt")).value();
    const auto from = f.hosts[0].hcas[0], to = f.hosts[1].hcas[3];
    REQUIRE_FALSE(router(f, r).path(from, to).empty());
    SECTION("no table") { r.ports.erase(f.switches[f.hcas[from].leaf].id); }
    SECTION("back to the leaf it came from") {
        for (auto& [id, ports] : r.ports)
            if (f.hcas[to].lid < ports.size()) ports[f.hcas[to].lid] = 33;
    }
    SECTION("a port without a cable") { r.ports.at(f.switches[f.hcas[from].leaf].id)[f.hcas[to].lid] = 30; }
    CHECK(router(f, r).path(from, to).empty());
}

TEST_CASE("what is no forwarding table", "[topo]") {
    CHECK(read_routing(fixture("perfquery.txt")).error().hint.find("dump_lfts") != std::string::npos);
    const auto r = read_routing(
        "Unicast lids [0x0-0x8d] of switch Lid 3 guid 0x00fc (a):\n0xffffffff 3\n0x0003 xyz\n0x0004 007 :\n");
    REQUIRE(r);
    CHECK(r->skipped_lines == 2);
    CHECK(r->port_to(0xfc, 4) == 7);
    CHECK(r->port_to(0xfc, 3) == routing::no_route);
}

TEST_CASE("how evenly tables use the links up", "[topo]") {
    const auto f = model_of("ibnetdiscover.txt");
    auto r = read_routing(fixture("dump_lfts.txt")).value();
    const auto even = balance_of(f, r);
    REQUIRE(even.size() == 1);
    CHECK(even[0].links == 8 * 16);
    // Each leaf sends to the 112 HCAs of the other rails over its 16 links up.
    CHECK(even[0].mean == Approx(7));
    CHECK(even[0].without_route == 0);
    // All over one link.
    const auto leaf = f.hcas[f.hosts[0].hcas[0]].leaf;
    for (auto& port : r.ports.at(f.switches[leaf].id))
        if (port >= 33 && port != routing::no_route) port = 34;
    const auto crowded = balance_of(f, r);
    CHECK(crowded[0].most == 112);
    CHECK(crowded[0].busiest.index == leaf);
    CHECK(crowded[0].busiest.port == 34);
}

TEST_CASE("the busiest link by the tables", "[topo]") {
    const auto f = model_of("ibnetdiscover.txt");
    auto tables = read_routing(fixture("dump_lfts.txt")).value();
    // One ring over all ranks goes from the last rail of each node to the first of the next, over a spine.
    const auto ring = make_request(parse_shape("dp=128").value(), 16, 8, 0).value();
    const auto p = place(f, all_hosts(f), ring).value();
    const auto edge = traffic_of(ring.dims, model_size{})[dimension::dp];
    const auto spread = busiest_link(f, ring, p, tables);
    CHECK(spread.without_route == 0);
    CHECK(spread.bytes >= edge);
    CHECK(spread.bytes < 16 * edge);
    // All of them over one link.
    const auto last_leaf = f.hcas[f.hosts[0].hcas[7]].leaf;
    for (auto& port : tables.ports.at(f.switches[last_leaf].id))
        if (port >= 33 && port != routing::no_route) port = 34;
    const auto crowded = busiest_link(f, ring, p, tables);
    CHECK(crowded.bytes == Approx(16 * edge));
    CHECK(crowded.from == port_ref{node_kind::switch_node, last_leaf, 34});
    // Rails that stay on their leaf load no link between switches.
    const auto pipelines = make_request(parse_shape("tp=8,pp=16").value(), 16, 8, 0).value();
    CHECK(busiest_link(f, pipelines, place(f, all_hosts(f), pipelines).value(), tables).bytes == 0);
    tables.ports.erase(f.switches[last_leaf].id);
    CHECK(busiest_link(f, ring, p, tables).without_route > 0);
}

}  // namespace test_routing
