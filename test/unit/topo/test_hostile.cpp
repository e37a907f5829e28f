// SPDX-License-Identifier: BSD-3-Clause
//
// Dumps that claim what no fabric is: all of it is told, and in a bounded number of steps.
#include <random>

#include <banyan/topo/reader.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"

namespace test_hostile {

using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

/// Lower switches with a host each below upper ones that each lack a tenth of them, no two the same.
struct holes : dump_writer {
    holes(unsigned lowers, unsigned uppers, bool meshed) {
        std::mt19937 random(1);
        std::vector<guid> low, high;
        std::vector<unsigned> used(lowers + uppers, 1);
        for (unsigned i = 0; i < lowers; ++i) low.push_back(add_switch(fmt::format("low{}", i)));
        for (unsigned i = 0; i < uppers; ++i) high.push_back(add_switch(fmt::format("high{}", i)));
        for (unsigned i = 0; i < lowers; ++i) link(add_hca(fmt::format("n{} mlx5_0", i)), 1, low[i], 1);
        for (unsigned h = 0; h < uppers; ++h) {
            for (unsigned l = 0; l < lowers; ++l)
                if (random() % 10 > 0) link(low[l], ++used[l], high[h], ++used[lowers + h]);
            for (unsigned other = 0; meshed && other < h; ++other)
                link(high[other], ++used[lowers + other], high[h], ++used[lowers + h]);
        }
    }
};

void model_a_mesh_with_holes(std::uint32_t side, bool meshed) {
    const auto f = holes(side, side, meshed).model();
    CHECK(f.hosts.size() == side);
    std::size_t leaves = 0, spines = 0;
    for (const auto& s : f.switches) leaves += s.level == 0, spines += s.level == 1;
    CHECK(leaves == side);
    CHECK(spines == side);
    // All holes are told, each once.
    std::size_t told = 0, links = 0;
    for (const auto& d : f.defects)
        if (d.kind == "missing-uplink" || d.kind == "asymmetric-spine") told += d.where.size() - 1;
    for (const auto& l : f.links)
        if (l.a.kind == node_kind::switch_node && l.b.kind == node_kind::switch_node)
            links += f.switches[l.a.index].level != f.switches[l.b.index].level;
    CHECK(told + links == std::size_t{side} * side);
}
}  // namespace

TEST_CASE("a mesh with holes is modelled in bounded steps", "[topo][hostile]") {
    model_a_mesh_with_holes(200, GENERATE(false, true));
}

TEST_CASE("a large mesh with holes is modelled in bounded steps", "[.large]") {
    model_a_mesh_with_holes(700, GENERATE(false, true));
}

TEST_CASE("ports in any order are found at both ends", "[topo][hostile]") {
    rail_fabric d(3, 8, 4, 4);
    auto text = d.text();
    // The lines of each record the other way round.
    std::string turned;
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = text.find('\n', at) + 1;
        const auto line = text.substr(at, end - at);
        at = end;
        if (line.starts_with('[')) {
            lines.push_back(line);
            continue;
        }
        for (; !lines.empty(); lines.pop_back()) turned += lines.back();
        turned += line;
    }
    for (; !lines.empty(); lines.pop_back()) turned += lines.back();
    REQUIRE(turned != text);
    const auto f = build_fabric(read_ibnetdiscover(turned).value());
    CHECK(f.defects.empty());
    CHECK(f.links.size() == d.model().links.size());
}

TEST_CASE("where a router hangs is told, but not a thousand times", "[topo][hostile]") {
    rail_fabric d(2, 8, 1, 4);
    const auto router = d.add_router("rt1"), other = d.add_router("rt2");
    for (unsigned p = 0; p < 400; ++p) d.link(d.spines[p % 4], 50 + p / 4, router, p + 1);
    d.link(d.spines[1], 200, other, 1);
    const auto f = d.model();
    REQUIRE(f.excluded.size() == 2);
    CHECK(f.excluded[0].why.size() < 1100);
    CHECK(f.excluded[1].why.find("spine-1 port 200") != std::string::npos);
}

TEST_CASE("a kind of defect that covers the fabric is told once", "[topo][hostile]") {
    // Every cable between switches is listed by its lower end alone.
    constexpr unsigned lowers = 101, uppers = 101;
    dump_writer d;
    std::vector<guid> high;
    for (unsigned h = 0; h < uppers; ++h) high.push_back(d.add_switch(fmt::format("high{}", h)));
    for (unsigned l = 0; l < lowers; ++l) {
        const auto low = d.add_switch(fmt::format("low{}", l));
        d.link(d.add_hca(fmt::format("n{} mlx5_0", l)), 1, low, 1);
        for (unsigned h = 0; h < uppers; ++h) {
            d.link(low, 2 + h, high[h], 1 + l);
            d.forget(high[h], 1 + l);
        }
    }
    const auto f = d.model();
    CHECK(f.links.size() == lowers * (uppers + 1));
    REQUIRE(f.defects.size() == 1);
    const auto& told = f.defects.front();
    CHECK(told.kind == "one-way-link");
    CHECK(told.objects.size() == 16);
    CHECK(told.where.size() == 16);
    CHECK(told.evidence.starts_with("10201 of this kind"));
    CHECK(told.evidence.find("only low0 port 2 lists the link") != std::string::npos);
}

TEST_CASE("a name that hundreds of HCAs have is an image's and names no host", "[topo][hostile]") {
    // On leaves of their own, so that all pairs of leaves of such a host would be too many.
    constexpr unsigned count = 20'000;
    rail_fabric d(2, 8, 2, 2);
    for (unsigned i = 0; i < count; ++i)
        d.link(d.add_hca("image mlx5_0"), 1, d.add_switch(fmt::format("lone{}", i)), 1 + i % 3);
    const auto f = d.model();
    CHECK(f.hosts.size() == 16);
    CHECK(f.leaf_groups.size() == 2);
    CHECK(f.excluded.size() == count);
    // Names, and leaves from which nothing leads up.
    REQUIRE(f.defects.size() == 2);
    CHECK(f.defects[0].kind == "factory-name");
    CHECK(f.defects[1].kind == "missing-uplink");
    for (const auto& told : f.defects) CHECK(told.evidence.starts_with("20000 of this kind"));
}

TEST_CASE("hosts with more HCAs than any has keep their group", "[topo][hostile]") {
    constexpr unsigned rails = 60;
    const auto f = rail_fabric(2, 4, rails, 2).model();
    REQUIRE(f.leaf_groups.size() == 2);
    CHECK(f.leaf_groups[0].leaves.size() == rails);
    CHECK(f.defects.empty());
}

TEST_CASE("a crowd of one device keeps the one that sits where its host does", "[topo][hostile]") {
    rail_fabric d(1, 8, 4, 2);
    // As many as a host may have are called as one that is there, on other ports of the same leaves.
    for (unsigned i = 0; i < 200; ++i) d.link(d.add_hca("g0n00 mlx5_1"), 1, d.leaves[0][i % 4], 40 + i);
    const auto f = d.model();
    const auto host = find_host(f, "g0n00");
    REQUIRE(host != none);
    CHECK(f.hosts[host].hcas.size() == 4);
    std::size_t doubled = 0;
    for (const auto& e : f.defects) doubled += e.kind == "duplicate-name";
    CHECK(doubled == 200);
}

}  // namespace test_hostile
