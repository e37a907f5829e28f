// SPDX-License-Identifier: BSD-3-Clause
//
// Hosts that do not compute: gateways on spines, managers, and those that only look like them.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"
#include "fixtures.hpp"
#include "topo/generate/generate.hpp"

namespace test_services {

using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

std::string levels_of(const fabric& f) {
    std::string out;
    for (const auto& s : f.switches) out += static_cast<char>('0' + s.level);
    return out;
}

bool is_excluded(const fabric& f, const std::string& name) {
    return std::any_of(f.excluded.begin(), f.excluded.end(), [&](const auto& e) { return e.name == name; });
}

}  // namespace

TEST_CASE("as many gateways on a spine as hosts on a leaf make no leaf of it", "[topo]") {
    const auto prefix = GENERATE(as<std::string>(), "io", "gw", "viz");
    const unsigned each = GENERATE(1u, 2u, 3u);
    // Without a word in the switches' names.
    const bool named = GENERATE(true, false);
    INFO(prefix << " " << each << " " << named);
    rail_fabric d(3, 2, 1, 2);
    const auto plain = d.model();
    unsigned n = 0;
    for (const auto spine : d.spines)
        for (unsigned i = 0; i < each; ++i)
            d.link(d.add_hca(fmt::format("{}{} mlx5_0", prefix, ++n)), 1, spine, 50 + i);
    auto text = d.text();
    for (std::size_t at = 0; !named && (at = text.find("spine-", at)) != std::string::npos;)
        text.replace(at, 6, "sw-");
    for (std::size_t at = 0; !named && (at = text.find("leaf-", at)) != std::string::npos;)
        text.replace(at, 5, "sw-9");
    const auto f = build_fabric(read_ibnetdiscover(text).value());
    // Where three are on each of two spines, names are all there is.
    if (named || each < 3 || prefix == "gw") {
        CHECK(levels_of(f) == levels_of(plain));
        CHECK(f.hosts.size() == 6);
        CHECK(f.defects.empty());
    }
}

TEST_CASE("a manager is none of the compute hosts, however few are left", "[topo]") {
    const unsigned hosts = GENERATE(1u, 2u, 8u);
    rail_fabric d(1, hosts, 1, 2);
    d.link(d.add_hca("sm01 mlx5_0"), 1, d.leaves[0][0], 40);
    const auto f = d.model();
    CHECK(f.hosts.size() == hosts);
    CHECK(is_excluded(f, "sm01 mlx5_0"));
}

TEST_CASE("a cluster whose hosts are called as managers computes", "[topo]") {
    rail_fabric d(1, 1, 1, 2);
    for (unsigned i = 1; i < 20; ++i)
        d.link(d.add_hca(fmt::format("sm{:02} mlx5_0", i)), 1, d.leaves[0][0], 10 + i);
    CHECK(d.model().hosts.size() == 20);
}

TEST_CASE("a host of another name that lost a rail is no manager", "[topo]") {
    rail_fabric d(2, 16, 2, 4);
    d.forget(d.hcas[0][5][0], 1);
    d.forget(d.leaves[0][0], 6);
    // Beside the row, on one leaf alone.
    d.link(d.add_hca("adm mlx5_0"), 1, d.leaves[1][0], 30);
    auto text = d.text();
    for (std::size_t at = 0; (at = text.find("\"g0n05 mlx5_1\"", at)) != std::string::npos;)
        text.replace(at, 14, "\"login mlx5_1\"");
    // The other HCA has no link, and so no record.
    const auto record = text.rfind("\nvendid", text.find("\"g0n05 mlx5_0\""));
    text.erase(record, text.find("\nvendid", record + 1) - record);
    const auto f = build_fabric(read_ibnetdiscover(text).value());
    INFO(f.excluded.size());
    CHECK(is_excluded(f, "adm mlx5_0"));
    CHECK_FALSE(is_excluded(f, "login mlx5_1"));
    REQUIRE(f.defects.size() == 1);
    CHECK(f.defects[0].kind == "missing-rail");
    CHECK(f.defects[0].objects.at(0) == "login");
}

TEST_CASE("what hosts on spines and cores of directors are left make no leaves", "[topo]") {
    generate::options o;
    o.hosts = GENERATE(3u, 6u);
    o.group_size = o.hosts == 3 ? 4 : 2;
    o.rails = 1;
    o.levels = 3;
    o.spine_group_size = 1;
    o.racks_off = 0.5;
    o.gateways = 1;
    o.core_hosts = 1;
    o.directors = GENERATE(true, false);
    o.seed = GENERATE(687u, 1u, 2u);
    const auto made = generate::generate(o).value();
    const auto f = build_fabric(read_ibnetdiscover(made.text).value());
    for (const auto& t : made.facts.switches)
        for (const auto& s : f.switches)
            if (s.id == t.id) CHECK(s.level == t.level);
    for (const auto& d : f.defects) CHECK(d.kind == "off");
    for (const auto& h : f.hosts) CHECK(h.name[0] == 'n');
}

TEST_CASE("as many cards as hosts do not make hosts of cards and managers", "[topo]") {
    rail_fabric d(2, 8, 2, 2);
    for (unsigned i = 0; i < 16; ++i)
        d.link(d.add_hca(fmt::format("bf{} mlx5_0", i)), 1, d.leaves[i % 2][0], 10 + i / 2);
    d.link(d.add_hca("ibmgr1 mlx5_0"), 1, d.leaves[0][1], 20);
    const bool cards = GENERATE(true, false);
    auto dump = read_ibnetdiscover(d.text()).value();
    for (auto& n : dump.nodes)
        if (n.kind == node_kind::hca)
            n.device = n.name.starts_with("bf") == cards ? std::uint16_t{0xa2d6} : std::uint16_t{0x1021};
    const auto f = build_fabric(dump);
    CHECK(f.hosts.size() == (cards ? 16 : 32));
    CHECK(f.defects.empty());
}

}  // namespace test_services
