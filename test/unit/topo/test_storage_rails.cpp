// SPDX-License-Identifier: BSD-3-Clause
//
// HCAs that lead to storage, told from those of rails without a site file.
#include <algorithm>
#include <functional>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"
#include "topo/generate/generate.hpp"
#include "topo/model/divisions.hpp"

namespace test_storage_rails {

using namespace banyan::topo;
using namespace banyan::topo::test;
using namespace banyan::topo::build;

namespace {

/// Each of the `hosts` hosts of each group gets one more HCA, on the switch that `where` names.
struct storage_fabric : rail_fabric {
    storage_fabric(unsigned groups, unsigned hosts, unsigned rails, unsigned more,
                   const std::function<std::string(unsigned group, unsigned host, unsigned hca)>& where)
        : rail_fabric(groups, hosts, rails, 4) {
        for (unsigned g = 0; g < groups; ++g)
            for (unsigned h = 0; h < hosts; ++h)
                for (unsigned m = 0; m < more; ++m) {
                    const auto hca = add_hca(fmt::format("g{}n{:02} mlx5_{}", g, h, rails + m));
                    link(hca, 1, switch_of(where(g, h, m)), ++used[where(g, h, m)]);
                }
    }
    guid switch_of(const std::string& name) {
        const auto [at, fresh] = switches.try_emplace(name);
        if (fresh) at->second = add_switch(name);
        return at->second;
    }
    std::map<std::string, guid> switches;
    std::map<std::string, unsigned> used;
};

std::set<std::string> devices_left_out(const fabric& f) {
    std::set<std::string> out;
    for (const auto& e : f.excluded)
        if (e.kind == "storage") out.insert(e.name.substr(e.name.find(' ') + 1));
    return out;
}

void check_groups(const fabric& f, std::size_t groups, std::size_t hosts, std::size_t rails) {
    REQUIRE(f.leaf_groups.size() == groups);
    for (const auto& g : f.leaf_groups) {
        CHECK(g.hosts.size() == hosts);
        CHECK(g.leaves.size() == rails);
    }
    for (const auto& h : f.hosts) CHECK(h.confidence == 1.0);
}

}  // namespace

TEST_CASE("how a device divides hosts against another", "[topo]") {
    struct row {
        leaf_by_host a, b;
        divides how;
    };
    const leaf_by_host twos{1, 1, 1, 1, 2, 2, 2, 2}, all(8, 9), fours{3, 3, 4, 4, 5, 5, 6, 6};
    const auto r =
        GENERATE_COPY(row{twos, twos, divides::alike}, row{all, twos, divides::coarser},
                      row{twos, all, divides::finer}, row{fours, twos, divides::finer},
                      row{{7, 8, 7, 8, 7, 8, 7, 8}, {1, 1, 2, 2, 3, 3, 4, 4}, divides::across},
                      row{{7, 8, 9, 7, 8, 9, 7, 8, 9}, {1, 1, 1, 2, 2, 2, 3, 3, 3}, divides::across},
                      // Two cables crossed, one of them to a leaf of its own, one missing.
                      row{{1, 1, 1, 2, 1, 2, 2, 2}, twos, divides::alike},
                      row{{1, 1, 1, 7, 2, 2, 2, 2}, twos, divides::alike},
                      row{{1, 1, 1, none, 2, 2, 2, 2}, twos, divides::alike}, row{{}, {}, divides::alike},
                      row{leaf_by_host(4, none), leaf_by_host(4, none), divides::alike});
    CHECK(compare_divisions(r.a, r.b) == r.how);
}

TEST_CASE("HCAs on switches that several groups share lead to storage", "[topo]") {
    const auto groups = GENERATE(2u, 3u, 6u), hosts = GENERATE(3u, 8u), rails = GENERATE(2u, 4u, 8u),
               more = GENERATE(1u, 2u);
    if (more >= rails) return;
    CAPTURE(groups, hosts, rails, more);
    const storage_fabric d(groups, hosts, rails, more,
                           [](unsigned, unsigned, unsigned m) { return fmt::format("sw-{}", m); });
    const auto f = d.model();
    check_groups(f, groups, hosts, rails);
    CHECK(devices_left_out(f).size() == more);
    CHECK(devices_left_out(f).contains(fmt::format("mlx5_{}", rails)));
}

TEST_CASE("storage switches of every other group, in turn, or within a group", "[topo]") {
    const std::function<std::string(unsigned, unsigned, unsigned)> where[] = {
        [](unsigned g, unsigned, unsigned) { return fmt::format("sw-{}", g / 2); },
        [](unsigned, unsigned h, unsigned) { return fmt::format("sw-{}", h % 2); },
        [](unsigned g, unsigned h, unsigned) { return fmt::format("sw-{}-{}", g, h / 4); },
        [](unsigned g, unsigned, unsigned) { return fmt::format("MF0;storage-{}:MQM9790/U1", g); }};
    const auto way = GENERATE(0u, 1u, 2u, 3u);
    CAPTURE(way);
    const auto f = storage_fabric(4, 8, 4, 1, where[way]).model();
    check_groups(f, 4, 8, 4);
    CHECK(devices_left_out(f) == std::set<std::string>{"mlx5_4"});
}

TEST_CASE("storage on a fabric of its own, though its switches divide hosts as the rails do", "[topo]") {
    storage_fabric d(2, 8, 4, 1, [](unsigned g, unsigned, unsigned) { return fmt::format("other-{}", g); });
    const auto up = d.add_switch("other-up");
    d.link(d.switches["other-0"], 40, up, 1);
    d.link(d.switches["other-1"], 40, up, 2);
    const auto f = d.model();
    check_groups(f, 2, 8, 4);
    CHECK(devices_left_out(f) == std::set<std::string>{"mlx5_4"});
}

TEST_CASE("hosts on the switches of storage alone do not compute", "[topo]") {
    storage_fabric d(2, 8, 4, 1, [](unsigned, unsigned, unsigned) { return "sw"; });
    for (unsigned i = 0; i < 3; ++i)
        d.link(d.add_hca(fmt::format("filer{} mlx5_0", i)), 1, d.switches["sw"], 40 + i);
    const auto f = d.model();
    check_groups(f, 2, 8, 4);
    CHECK(f.hosts.size() == 16);
}

TEST_CASE("one HCA for either: the groups stay apart, and it is said that nobody knows", "[topo]") {
    const auto f = storage_fabric(3, 4, 1, 1, [](unsigned, unsigned, unsigned) { return "sw"; }).model();
    check_groups(f, 3, 4, 1);
    REQUIRE(devices_left_out(f) == std::set<std::string>{"mlx5_1"});
    for (const auto& e : f.excluded) CHECK(e.why.find("[storage] devices") != std::string::npos);
}

TEST_CASE("a site file that names the devices, or none, has the last word", "[topo]") {
    const storage_fabric d(2, 8, 4, 1, [](unsigned, unsigned, unsigned) { return "sw"; });
    build_options o;
    o.site.storage_devices.emplace();
    CHECK(devices_left_out(d.model(o)).empty());
    o.site.storage_devices = {{"mlx5_3"}};
    CHECK(devices_left_out(d.model(o)) == std::set<std::string>{"mlx5_3"});
}

TEST_CASE("rails are no storage, whatever is wrong with their cables", "[topo]") {
    rail_fabric d(2, 4, 4, 4);
    const auto way = GENERATE(0, 1, 2, 3);
    CAPTURE(way);
    if (way == 1) {  // a rail that lost all its links up
        for (unsigned g = 0; g < 2; ++g)
            for (unsigned port = 5; port < 60; ++port) d.forget(d.leaves[g][3], port);
    } else if (way == 2) {  // hosts of either group on the other's leaf
        d.forget(d.leaves[0][3], 1), d.forget(d.leaves[1][3], 1);
        d.forget(d.hcas[0][0][3], 1), d.forget(d.hcas[1][0][3], 1);
        d.link(d.hcas[0][0][3], 1, d.leaves[1][3], 1), d.link(d.hcas[1][0][3], 1, d.leaves[0][3], 1);
    } else if (way == 3) {  // half of a rail's HCAs have no link
        for (unsigned h = 0; h < 4; ++h) d.forget(d.leaves[0][2], h + 1), d.forget(d.hcas[0][h][2], 1);
    }
    CHECK(devices_left_out(d.model()).empty());
}

TEST_CASE("each of two makes of hosts is one group, and storage is what they share", "[topo][storage]") {
    generate::options o;
    o.hosts = 24;
    o.group_size = 12;
    o.rails = 8;
    o.odd.storage.rails = GENERATE(1u, 2u);
    o.odd.storage.up =
        GENERATE(generate::shared_storage::way::few_uplinks, generate::shared_storage::way::apart);
    o.odd.less.groups = 1;
    o.odd.less.hcas = 4;
    const auto f = build_fabric(read_dump(generate::generate(o).value().text).value());
    CHECK(f.defects.empty());
    REQUIRE(f.leaf_groups.size() == 2);
    const auto first = f.leaf_groups[0].leaves.size(), second = f.leaf_groups[1].leaves.size();
    CHECK(std::min(first, second) == 4);
    CHECK(std::max(first, second) == 8);
    CHECK(std::ssize(f.excluded) >= 24 * o.odd.storage.rails);
}

TEST_CASE("links of a network for storage are compared with its own", "[topo][storage]") {
    storage_fabric d(4, 6, 4, 1, [](auto g, auto, auto) { return fmt::format("st-{}", g / 2); });
    const bool slow = GENERATE(false, true);
    for (unsigned i = 0; i < 6; ++i)
        d.link(d.switches["st-" + std::to_string(i % 2)], 40 + i, d.switch_of("st-spine"), 1 + i,
               slow && i == 3 ? "4xEDR" : "4xHDR");
    const auto f = d.model();
    REQUIRE(f.defects.size() == slow);
    if (slow) CHECK(f.defects[0].kind == "slow-link");
}

}  // namespace test_storage_rails
