// SPDX-License-Identifier: BSD-3-Clause
//
// What a site built on purpose is no defect: few cables to a leaf that serves others than the jobs, a
// director's outer ports, cards that are hosts of their own, an older switch. And beside each what
// really lacks a cable is found.
#include <algorithm>

#include <banyan/topo/capacity.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"

namespace test_by_design {

using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

fabric told(const fabric& f) {
    for (const auto& d : f.defects) UNSCOPED_INFO(d.kind << " " << d.objects.at(0) << ": " << d.evidence);
    return f;
}

void unplug(rail_fabric& d, unsigned group, unsigned rail, unsigned spine, unsigned rails) {
    d.forget(d.leaves[group][rail], 33 + spine);
    d.forget(d.spines[spine], 1 + group * rails + rail);
}

std::uint8_t level_of(const fabric& f, const std::string& name) {
    const auto at = std::ranges::find(f.switches, name, &switch_node::name);
    REQUIRE(at != f.switches.end());
    return at->level;
}

}  // namespace

TEST_CASE("a leaf of service hosts has as many cables as it was given", "[topo]") {
    rail_fabric d(3, 8, 4, 4);
    const auto leaf = d.add_switch("svc");
    for (unsigned i = 0; i < 3; ++i) d.link(d.add_hca(fmt::format("login{} HCA-1", i)), 1, leaf, 1 + i);
    const bool joined = GENERATE(true, false);
    for (unsigned k = 0; joined && k < 2; ++k) d.link(leaf, 30 + k, d.spines[2], 50 + k);
    CHECK(told(d.model()).defects.empty());
    unplug(d, 1, 2, 3, 4);
    const auto f = told(d.model());
    REQUIRE(f.defects.size() == 1);
    CHECK(f.defects[0].objects[0] == "leaf-1-2");
}

TEST_CASE("leaves of other hosts are like each other, not like the rest", "[topo]") {
    rail_fabric d(3, 8, 2, 6);
    const auto* const prefix = GENERATE("oss", "scratch");
    const unsigned each = GENERATE(2u, 4u);
    for (unsigned l = 0; l < 2; ++l) {
        const auto leaf = d.add_switch(fmt::format("st-{}", l));
        for (unsigned s = 0; s < each; ++s) d.link(leaf, 30 + s, d.spines[(2 * l + s) % 6], 50 + l);
        for (unsigned h = 0; h < 4; ++h)
            for (unsigned i = 0; i < 2; ++i)
                d.link(d.add_hca(fmt::format("{}{} mlx5_{}", prefix, 4 * l + h, i)), 1, leaf, 1 + 2 * h + i);
    }
    CHECK(told(d.model()).defects.empty());
    unplug(d, 2, 0, 1, 2);
    CHECK(told(d.model()).defects.size() == 1);
}

TEST_CASE("a leaf under a spine of its own, two cables of which lead to every second core", "[topo]") {
    dump_writer d;
    std::vector<guid> cores;
    for (unsigned c = 0; c < 6; ++c) cores.push_back(d.add_switch(fmt::format("hub{}", c)));
    unsigned host = 0;
    for (unsigned pod = 0; pod < 2; ++pod) {
        std::vector<guid> spines;
        for (unsigned s = 0; s < 6; ++s) {
            spines.push_back(d.add_switch(fmt::format("up{}", pod * 6 + s)));
            for (unsigned c = 0; c < 6; ++c) d.link(spines[s], 20 + c, cores[c], 1 + pod * 6 + s);
        }
        for (unsigned l = 0; l < 3; ++l) {
            const auto leaf = d.add_switch(fmt::format("low{}", pod * 3 + l));
            for (unsigned s = 0; s < 6; ++s) d.link(leaf, 20 + s, spines[s], 1 + l);
            for (unsigned h = 0; h < 6; ++h)
                d.link(d.add_hca(fmt::format("n{:02} mlx5_0", host++)), 1, leaf, 1 + h);
        }
    }
    const auto used = GENERATE(2u, 1u, 0u);
    for (unsigned m = 0; m < 2; ++m) {
        const auto spine = d.add_switch(fmt::format("mup{}", m));
        const auto leaf = d.add_switch(fmt::format("mlow{}", m));
        for (unsigned k = 0; k < 4; ++k) d.link(leaf, 20 + k, spine, 1 + k);
        for (unsigned c = 0; c < 3; ++c)
            for (unsigned k = 0; k < 2; ++k) d.link(spine, 20 + 2 * c + k, cores[2 * c + m], 30 + k);
        if (m < used) d.link(d.add_hca(fmt::format("login{} mlx5_0", m)), 1, leaf, 1);
    }
    const auto f = told(d.model());
    CHECK(levels(f) == 3);
    CHECK(level_of(f, "mup1") == 1);
    CHECK(level_of(f, "mlow1") == 0);
    CHECK(std::ranges::all_of(f.defects, is_notice));
    CHECK(f.defects.size() == 2 - used);
}

TEST_CASE("boxes without hosts on a director's outer ports are leaves", "[topo]") {
    dump_writer d;
    std::vector<guid> lines;
    for (unsigned l = 0; l < 8; ++l)
        lines.push_back(d.add_switch(fmt::format("MF0;d1:CS8500/L{:02}/U1", l + 1)));
    for (unsigned s = 0; s < 4; ++s) {
        const auto spine = d.add_switch(fmt::format("MF0;d1:CS8500/S{:02}/U1", s + 1));
        for (unsigned l = 0; l < 8; ++l) d.link(lines[l], 21 + s, spine, 1 + l);
    }
    constexpr const char* factory = "Quantum Mellanox Technologies";
    // Each on all line cards, but for one; or on one half of them, and the last on some of either.
    const bool halves = GENERATE(true, false);
    for (unsigned e = 0; e < 6; ++e) {
        const auto edge = d.add_switch(factory);
        const bool used = e < 4;
        const auto first = !halves ? 0u : e == 5 ? 2u : e / 2 % 2 * 4;
        for (unsigned l = 0; l < (halves || e == 5 ? 4 : 8); ++l)
            d.link(edge, 21 + l, lines[first + l], 1 + e);
        for (unsigned h = 0; used && h < 8; ++h)
            d.link(d.add_hca(fmt::format("n{:02} HCA-1", e * 8 + h)), 1, edge, 1 + h);
    }
    auto f = d.model();
    std::erase_if(f.defects, [](const auto& each) { return each.kind == "factory-name"; });
    told(f);
    for (const auto& s : f.switches)
        CHECK(int{s.level} == (s.name == factory ? 0 : s.name.find("/L") != std::string::npos ? 1 : 2));
    REQUIRE(f.defects.size() == 2);
    for (const auto& each : f.defects) CHECK(each.kind == "off");
    if (!halves) CHECK(f.defects[1].evidence.ends_with("with 4 of 8 uplinks"));
}

TEST_CASE("cards that run a system of their own do not compute", "[topo]") {
    rail_fabric d(2, 8, 2, 2);
    for (unsigned i = 0; i < 8; ++i)
        d.link(d.add_hca(fmt::format("bf{} mlx5_0", i)), 1, d.leaves[i % 2][i / 2 % 2], 20 + i);
    const std::uint16_t chip = GENERATE(0xa2d2, 0xa2d6, 0xa2dc, 0x1021);
    auto dump = read_ibnetdiscover(d.text()).value();
    for (auto& n : dump.nodes)
        if (n.kind == node_kind::hca) n.device = n.name.starts_with("bf") ? chip : std::uint16_t{0x1021};
    const auto f = told(build_fabric(dump));
    const bool card = chip != 0x1021;
    CHECK(f.hosts.size() == (card ? 16 : 24));
    CHECK(f.defects.empty() == card);
    CHECK(std::ranges::count(f.excluded, "dpu", &exclusion::kind) == (card ? 8 : 0));
    // The same chip as any host's HCA.
    for (auto& n : dump.nodes)
        if (n.kind == node_kind::hca) n.device = chip;
    for (const auto& h : build_fabric(dump).hosts) CHECK((card || h.rails > 0));
}

TEST_CASE("links of an older switch are as fast as it can be", "[topo]") {
    rail_fabric d(3, 4, 2, 2);
    for (unsigned h = 0; h < 4; ++h) d.link(d.hcas[1][h][1], 1, d.leaves[1][1], h + 1, "4xEDR");
    auto dump = read_ibnetdiscover(d.text()).value();
    const bool older = GENERATE(true, false);
    for (auto& n : dump.nodes)
        if (older && n.name == "leaf-1-1") n.device = 0xcb20;
    CHECK(told(build_fabric(dump)).defects.size() == (older ? 0 : 4));
    if (!older) return;
    d.link(d.hcas[1][2][1], 1, d.leaves[1][1], 3, "4xFDR");
    dump = read_ibnetdiscover(d.text()).value();
    for (auto& n : dump.nodes)
        if (n.name == "leaf-1-1") n.device = 0xcb20;
    const auto f = told(build_fabric(dump));
    REQUIRE(f.defects.size() == 1);
    CHECK(f.defects[0].kind == "slow-link");
}

}  // namespace test_by_design
