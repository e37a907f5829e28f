// SPDX-License-Identifier: BSD-3-Clause
//
// Switches without a name of their own, and the ports that lack their cables.
#include <algorithm>

#include <banyan/topo/diff.hpp>
#include <banyan/topo/switch_names.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"

namespace test_switch_names {

using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

constexpr const char* factory = "Quantum Mellanox Technologies";

/// The fabric with that name on every switch.
std::string with_one_name(std::string text, const std::string& name) {
    for (const std::string kind : {"\"leaf-", "\"spine-"})
        for (std::size_t at = 0; (at = text.find(kind, at)) != std::string::npos; ++at)
            text.replace(at + 1, text.find('"', at + 1) - at - 1, name);
    return text;
}

fabric built(std::string text) { return build_fabric(read_ibnetdiscover(std::move(text)).value()); }

std::uint32_t index_of(const fabric& f, guid id) {
    const auto at = std::find_if(f.switches.begin(), f.switches.end(), [&](auto& s) { return s.id == id; });
    return static_cast<std::uint32_t>(at - f.switches.begin());
}

std::vector<defect> of_kind(const fabric& f, const std::string& kind) {
    std::vector<defect> out;
    for (const auto& d : f.defects)
        if (d.kind == kind) out.push_back(d);
    return out;
}

void cut_uplink(rail_fabric& d, unsigned group, unsigned rail, unsigned spine) {
    d.forget(d.leaves[group][rail], 33 + spine);
    d.forget(d.spines[spine], 1 + group * 4 + rail);
}

}  // namespace

TEST_CASE("a switch without a name goes by its GUID, whatever comes and goes", "[topo][names]") {
    rail_fabric d(3, 8, 4, 4);
    const auto before = built(with_one_name(d.text(), factory));
    d.forget(d.leaves[0][1], 1);
    d.forget(d.hcas[0][0][1], 1);
    cut_uplink(d, 1, 2, 3);
    const auto extra = d.add_switch(factory);
    d.link(extra, 33, d.spines[0], 60);
    const auto after = built(with_one_name(d.text(), factory));
    const switch_names was(before), is(after);
    for (std::uint32_t i = 0; i < before.switches.size(); ++i) {
        CHECK(was.made_up(i) == fmt::format("switch-{:06x}", before.switches[i].id));
        CHECK(is.made_up(index_of(after, before.switches[i].id)) == was.made_up(i));
    }
}

TEST_CASE("names of their own are kept, doubled ones and like ends of GUIDs are told apart",
          "[topo][names]") {
    fabric f;
    for (const auto& [id, name] : {std::pair<guid, const char*>{0x1100abcdef, "leaf-1"},
                                   {0x2200abcdef, ""},
                                   {0x3300abcdef, factory},
                                   {0x4400000001, "twin"},
                                   {0x5500000002, "twin"},
                                   {0x6600000003, "switch-000004"},
                                   {0x7700000004, ""}}) {
        switch_node s;
        s.id = id;
        s.name = name;
        f.switches.push_back(s);
    }
    const switch_names names(f);
    CHECK_FALSE(names.nameless(0));
    CHECK(names.label(f, 0) == "leaf-1");
    CHECK(names.made_up(1) == "switch-0000002200abcdef");
    CHECK(names.made_up(2) == "switch-0000003300abcdef");
    CHECK(names.label(f, 3) == "switch-000001 (0x0000004400000001)");
    CHECK(names.of(f, 4) == "switch-000002");
    // Somebody named one as another would be named here.
    CHECK(names.of(f, 5) == "switch-000004");
    CHECK(names.made_up(6) == "switch-0000007700000004");
}

TEST_CASE("neighbours say where a nameless switch stands", "[topo][names]") {
    rail_fabric d(3, 8, 4, 4);
    const auto f = built(with_one_name(d.text(), factory));
    const switch_names names(f);
    const switch_places places(f, names);
    CHECK(places.of(index_of(f, d.leaves[1][2])) == "leaf of g1n[00-07] (g2), rail 2");
    CHECK(places.of(index_of(f, d.spines[3])) == "spine above g[1-3]");
    const auto named = d.model();
    CHECK(switch_places(named, switch_names(named))
              .of(index_of(named, d.spines[3]))
              .starts_with("spine above leaf-"));
}

TEST_CASE("a lost uplink of a nameless switch is named by GUID, and a second one is another defect",
          "[topo][names]") {
    rail_fabric d(3, 8, 4, 4);
    cut_uplink(d, 0, 1, 1);
    const auto one = of_kind(built(with_one_name(d.text(), factory)), "missing-uplink");
    REQUIRE(one.size() == 1);
    CHECK(one[0].objects.at(0) == fmt::format("switch-{0:06x} (0x{0:016x})", d.leaves[0][1]));
    CHECK(one[0].where == std::vector<std::string>{fmt::format("0x{:016x}", d.leaves[0][1]),
                                                   fmt::format("0x{:016x} port 34 to 0x{:016x} port 2",
                                                               d.leaves[0][1], d.spines[1])});
    cut_uplink(d, 0, 1, 3);
    const auto two = of_kind(built(with_one_name(d.text(), factory)), "missing-uplink");
    REQUIRE(two.size() == 1);
    CHECK(two[0].where != one[0].where);
    CHECK(two[0].where.size() == 3);
}

TEST_CASE("every missing port of a spine is told, however many", "[topo][names]") {
    rail_fabric d(8, 4, 4, 6);
    for (unsigned g = 0; g < 8; ++g)
        for (const unsigned r : {0u, 2u}) {
            d.forget(d.leaves[g][r], 33 + 4);
            d.forget(d.spines[4], 1 + g * 4 + r);
        }
    const auto found = of_kind(d.model(), "asymmetric-spine");
    REQUIRE(found.size() == 1);
    CHECK(found[0].evidence.ends_with("and 8 more switches"));
    REQUIRE(found[0].where.size() == 17);
    for (unsigned g = 0; g < 8; ++g)
        for (const unsigned r : {0u, 2u}) {
            const auto expected = fmt::format("0x{:016x} port 37 to 0x{:016x} port {}", d.leaves[g][r],
                                              d.spines[4], 1 + g * 4 + r);
            CHECK(std::count(found[0].where.begin(), found[0].where.end(), expected) == 1);
        }
}

TEST_CASE("a port that the other cables do not show is left out, not guessed", "[topo][names]") {
    rail_fabric d(3, 8, 4, 4);
    // Leaf 0-1 has its uplinks elsewhere than the others, and where they would be another cable sits.
    cut_uplink(d, 0, 1, 1);
    d.link(d.add_hca("ufm1 mlx5_0"), 1, d.leaves[0][1], 34);
    const auto found = of_kind(d.model(), "missing-uplink");
    REQUIRE(found.size() == 1);
    CHECK(found[0].where.at(1) == fmt::format("0x{:016x} to 0x{:016x} port 2", d.leaves[0][1], d.spines[1]));
}

TEST_CASE("a missing rail names the leaf's port", "[topo][names]") {
    rail_fabric d(3, 8, 4, 4);
    d.forget(d.leaves[2][3], 5);
    d.forget(d.hcas[2][4][3], 1);
    const auto found = of_kind(d.model(), "missing-rail");
    REQUIRE(found.size() == 1);
    CHECK(found[0].where == std::vector<std::string>{fmt::format("0x{:016x} port 5", d.leaves[2][3])});
}

TEST_CASE("defects of links go by the GUIDs and ports of their ends", "[topo][names]") {
    rail_fabric d(3, 8, 4, 4);
    d.link(d.hcas[0][2][1], 1, d.leaves[0][1], 3, "2xNDR");
    d.forget(d.spines[0], 2);
    d.link(d.hcas[1][2][1], 1, d.leaves[1][1], 6);
    d.link(d.hcas[1][5][1], 1, d.leaves[1][1], 3);
    const auto f = built(with_one_name(d.text(), factory));
    for (const auto* kind : {"narrow-link", "one-way-link", "swapped-cables"}) {
        const auto found = of_kind(f, kind);
        INFO(kind);
        REQUIRE(found.size() == 1);
        REQUIRE(found[0].where.size() == 2);
        for (const auto& where : found[0].where) CHECK(where.find(" port ") != std::string::npos);
    }
    const auto one_way = of_kind(f, "one-way-link");
    for (const auto& object : one_way[0].objects) CHECK(object.starts_with("switch-00"));
}

TEST_CASE("differences name nameless switches apart", "[topo][names]") {
    rail_fabric d(3, 8, 4, 4);
    const auto before = built(with_one_name(d.text(), factory));
    cut_uplink(d, 0, 1, 1);
    const auto change = diff(before, built(with_one_name(d.text(), factory)));
    REQUIRE(change.lost_links.size() == 1);
    CHECK(change.lost_links[0].a.text().starts_with("switch-00"));
    CHECK(change.lost_links[0].a.text() != change.lost_links[0].b.text());
}

}  // namespace test_switch_names
