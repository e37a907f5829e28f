// SPDX-License-Identifier: BSD-3-Clause
//
// Fabrics that are no plain tree, and hosts and switches that are not all named alike: made by the generator,
// and read as what they are.
#include <algorithm>
#include <set>

#include <banyan/topo/capacity.hpp>
#include <banyan/topo/placement.hpp>
#include <banyan/topo/reader.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"
#include "topo/generate/generate.hpp"
#include "topo/model/names.hpp"

namespace test_shapes {

using namespace banyan;
using namespace banyan::topo;
using generate::options;

namespace {

struct made {
    fabric f;
    generate::truth facts;
    std::string text;
};

made make_fabric(const options& o) {
    auto g = generate::generate(o);
    INFO((g ? "" : g.error().text()));
    REQUIRE(g);
    return {build_fabric(read_ibnetdiscover(g->text).value()), std::move(g->facts), g->text};
}

void check(const made& m) {
    std::size_t wrong = 0, off = 0, told = 0;
    for (const auto& t : m.facts.switches) {
        const auto at =
            std::find_if(m.f.switches.begin(), m.f.switches.end(), [&](auto& s) { return s.id == t.id; });
        REQUIRE(at != m.f.switches.end());
        if (at->level != t.level) ++wrong, UNSCOPED_INFO(at->name << " at level " << int(at->level));
        off += t.off;
    }
    for (const auto& d : m.f.defects) {
        told += is_notice(d);
        if (!is_notice(d) && d.kind != "factory-name")
            ++wrong, UNSCOPED_INFO(d.kind << " " << d.objects.at(0) << ": " << d.evidence);
    }
    CHECK(off == told);
    for (const auto& h : m.facts.hcas) {
        const auto at = std::find_if(m.f.hcas.begin(), m.f.hcas.end(), [&](auto& x) { return x.id == h.id; });
        REQUIRE(at != m.f.hcas.end());
        if (at->rail != h.rail)
            ++wrong, UNSCOPED_INFO(h.name << " on rail " << at->rail << " for " << h.rail);
    }
    CHECK(wrong == 0);
}

options dragonfly(std::uint64_t seed) {
    options o;
    o.seed = seed;
    o.shuffle = true;
    o.dragonfly = true;
    o.rails = 1;
    o.group_size = 8;
    o.spine_group_size = 4;
    o.hosts = 8 * 4 * (3 + static_cast<std::uint32_t>(seed % 3));
    return o;
}

}  // namespace

TEST_CASE("a dragonfly's groups are spine groups on one island", "[topo][shapes]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        auto o = dragonfly(seed);
        INFO("seed " << seed);
        const auto m = make_fabric(o);
        check(m);
        std::set<std::uint32_t> spine_groups;
        for (const auto& g : m.f.leaf_groups) {
            spine_groups.insert(g.spine_group);
            CHECK(g.island == 0);
        }
        CHECK(spine_groups.size() == 3 + seed % 3);
        CHECK(levels(m.f) == 2);
        const auto tiers = capacity(m.f);
        REQUIRE(tiers.size() == 3);
        CHECK(tiers[2].name == "spines to spines");
        const auto pairs = static_cast<double>(spine_groups.size() * (spine_groups.size() - 1) / 2);
        // As many links of a pair as a group has spines, each at both ends.
        const auto spines =
            std::count_if(m.f.switches.begin(), m.f.switches.end(), [](auto& s) { return s.level == 1; });
        CHECK(tiers[2].gbps ==
              2 * pairs * static_cast<double>(spines) / static_cast<double>(spine_groups.size()) * 200);
        CHECK(m.f.tier_cost[tier::core] > m.f.tier_cost[tier::spine]);
        // Racks, and whole groups, whose hosts are off.
        o.racks_off = 0.3;
        check(make_fabric(o));
        o.rack_size = 32;
        check(make_fabric(o));
    }
}

TEST_CASE("rails without a way between them are rails", "[topo][shapes]") {
    options o;
    o.rail_only = true;
    o.rails = 5;
    o.group_size = 8;
    o.hosts = 32;
    o.shuffle = true;
    const auto m = make_fabric(o);
    check(m);
    CHECK(m.f.leaf_groups.size() == 4);
    for (const auto& g : m.f.leaf_groups) {
        CHECK(g.leaves.size() == 5);
        CHECK(g.island == 0);
    }
    // No switch of a rail is joined to one of another.
    const auto tiers = capacity(m.f);
    REQUIRE(tiers[1].by_rail.size() == 5);
    for (const auto gbps : tiers[1].by_rail) CHECK(gbps == tiers[0].by_rail[0]);
    CHECK(capacity(m.f).size() == 2);
}

TEST_CASE("routers are records of their own", "[topo][shapes]") {
    options o;
    o.routers = 3;
    const auto m = make_fabric(o);
    check(m);
    CHECK(std::count_if(m.f.excluded.begin(), m.f.excluded.end(),
                        [](auto& e) { return e.kind == "router"; }) == 3);
    CHECK(m.text.find("\nRt\t1 \"R-") != std::string::npos);
}

TEST_CASE("line cards are leaves where hosts hang on them, and spines above other leaves", "[topo][shapes]") {
    options o;
    o.directors = true;
    o.rails = 1;
    o.group_size = 16;
    o.hosts = 96;
    auto m = make_fabric(o);
    check(m);
    CHECK(m.text.find("MF0;dir1:CS8500/L03/U2") != std::string::npos);
    o.racks_off = 0.3;
    check(make_fabric(o));
    o.levels = 3;
    o.radix = 32;
    o.spine_group_size = 2;
    o.hosts = 16 * 10;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        INFO("seed " << seed);
        o.seed = seed;
        check(make_fabric(o));
    }
    // A pod whose hosts are all off, and a gateway on its spines.
    o.gateways = 3;
    o.rack_size = 32;
    for (const bool directors : {true, false})
        for (std::uint64_t seed = 1; seed <= 10; ++seed) {
            INFO("gateways, seed " << seed);
            o.directors = directors;
            o.seed = seed;
            check(make_fabric(o));
        }
    CHECK(short_switch_name("MF0;dir1:CS8500/L03/U2") == "dir1/L03/U2");
    CHECK(short_switch_name("MF0;leaf-01:MQM9790/U1") == "leaf-01");
    CHECK(short_switch_name("MF0;leaf-01/L3") == "leaf-01/L3");
    CHECK(role_in_name("MF0;dir1:CS8500/L03/U2") == switch_role::leaf);
    CHECK(role_in_name("MF0;dir1:CS8500/S03/U2") == switch_role::upper);
}

TEST_CASE("hosts that number their HCAs otherwise have the same rails", "[topo][shapes]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        options o;
        o.seed = seed;
        o.mixed_names = 0.05 * static_cast<double>(1 + seed % 8);
        o.shuffle = true;
        INFO("seed " << seed);
        check(make_fabric(o));
    }
}

TEST_CASE("a torus is told as what levels cannot tell", "[topo][shapes]") {
    // Also where the hosts of a switch were never named.
    const bool all_named = GENERATE(true, false);
    test::dump_writer d;
    std::vector<guid> at;
    for (unsigned i = 0; i < 16; ++i) at.push_back(d.add_switch(fmt::format("sw{}", i)));
    for (unsigned y = 0; y < 4; ++y)
        for (unsigned x = 0; x < 4; ++x) {
            const auto self = at[4 * y + x];
            d.link(self, 33, at[4 * y + (x + 1) % 4], 34);
            d.link(self, 35, at[4 * ((y + 1) % 4) + x], 36);
            for (unsigned h = 0; h < 4; ++h)
                d.link(d.add_hca(all_named || self != at[6] ? fmt::format("n{:02}{} mlx5_0", 4 * y + x, h)
                                                            : "MT4123 ConnectX6   Mellanox Technologies"),
                       1, self, h + 1);
        }
    auto f = d.model();
    for (const auto& sw : f.switches) CHECK(sw.level == 0);
    std::erase_if(f.defects, [&](const auto& each) { return !all_named && each.kind == "factory-name"; });
    REQUIRE(f.defects.size() == 1);
    CHECK(f.defects[0].kind == "unknown-shape");
    CHECK(f.defects[0].evidence.starts_with("16 of 16 leaves are joined to each other"));
    CHECK(f.leaf_groups.size() == (all_named ? 16 : 15));
    // As far as it says.
    const auto first = find_host(f, "n000");
    CHECK(tier_between(f, first, find_host(f, "n001")) == tier::leaf);
    for (const auto* other : {"n010", "n020", "n150"})
        CHECK(tier_between(f, first, find_host(f, other)) == tier::core);
}

TEST_CASE("HCAs with ports on two leaves are told, and counted by one", "[topo][shapes]") {
    test::dump_writer d;
    const auto spine = d.add_switch("spine");
    std::vector<guid> leaves;
    for (unsigned i = 0; i < 6; ++i) leaves.push_back(d.add_switch(fmt::format("leaf-{}", i)));
    for (unsigned i = 0; i < 6; ++i)
        for (unsigned link = 0; link < 2; ++link) d.link(leaves[i], 35 + link, spine, 1 + 2 * i + link);
    for (unsigned h = 0; h < 24; ++h) {
        const auto hca = d.add_hca(fmt::format("n{:02} mlx5_0", h));
        const bool crossed = h == 13;
        for (unsigned port = 0; port < 2; ++port)
            d.link(hca, port + 1, leaves[2 * (h / 8) + (crossed ? 1 - port : port)], 1 + h % 8);
    }
    const auto f = d.model();
    REQUIRE(f.leaf_groups.size() == 3);
    for (const auto& g : f.leaf_groups) CHECK(g.hosts.size() == 8);
    CHECK(f.switches[f.leaf_groups[0].leaves.at(0)].name == "leaf-0");
    CHECK(f.switches[f.leaf_groups[2].leaves.at(0)].name == "leaf-4");
    std::set<std::string> kinds;
    for (const auto& each : f.defects) kinds.insert(each.kind);
    CHECK(kinds == std::set<std::string>{"unknown-shape", "wrong-rail"});
    CHECK(leaf_loads(f).at(0).ratio() == Approx(4));
    // Of the group with the crossed cables both leaves count.
    CHECK(capacity(f).at(0).gbps == Approx(24 * 400));
    CHECK(capacity(f).at(1).gbps == Approx(4 * 2 * 400));
}

TEST_CASE("two leaves back to back are no unknown shape", "[topo][shapes]") {
    test::dump_writer d;
    const auto a = d.add_switch("a"), b = d.add_switch("b");
    d.link(a, 33, b, 33);
    for (unsigned h = 0; h < 4; ++h) {
        d.link(d.add_hca(fmt::format("n{} mlx5_0", h)), 1, a, h + 1);
        d.link(d.add_hca(fmt::format("n{} mlx5_0", h + 4)), 1, b, h + 1);
    }
    CHECK(d.model().defects.empty());
}

TEST_CASE("shapes that exclude each other are refused", "[topo][shapes]") {
    const auto refused = [](auto change) {
        options o;
        change(o);
        const auto g = generate::generate(o);
        return g ? std::string("taken") : g.error().text();
    };
    CHECK(refused([](options& o) { o.global_links = 2; }).starts_with("--global-links needs"));
    CHECK(refused([](options& o) { o.dragonfly = true, o.levels = 3; }).find("--levels 2") !=
          std::string::npos);
    CHECK(refused([](options& o) {
              o.rail_only = true, o.storage_servers = 1;
          }).starts_with("--shape rail-only"));
    CHECK(refused([](options& o) { o.directors = true, o.planes = 4; }).starts_with("--directors excludes"));
    CHECK(refused([](options& o) { o.mixed_names = 1.5; }) == "--mixed-names is 1.5, expected 0 to 1");
    CHECK(refused([](options& o) { o.routers = 1000; }) == "--routers is 1000, expected 0 to 512");
}

}  // namespace test_shapes
