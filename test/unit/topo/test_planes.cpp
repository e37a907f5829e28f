// SPDX-License-Identifier: BSD-3-Clause
//
// Planes of a box's chips: one that an HCA lacks, and a chip that all of them lack.
#include <algorithm>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"

namespace test_planes {

using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

constexpr unsigned planes = 4, groups = 2, hosts = 3, rails = 2, spines = 2;

struct boxes : dump_writer {
    boxes() {
        const auto box = [&](const std::string& name) {
            std::vector<guid> out;
            for (unsigned p = 0; p < planes; ++p)
                out.push_back(add_switch(fmt::format("MF0;{}:Q3400_RA/U{}", name, p + 1)));
            return out;
        };
        for (unsigned s = 0; s < spines; ++s) spine.push_back(box(fmt::format("top-{}", s)));
        for (unsigned g = 0; g < groups; ++g)
            for (unsigned r = 0; r < rails; ++r) {
                leaf[g].push_back(box(fmt::format("tor-{}-{}", g, r)));
                for (unsigned p = 0; p < planes; ++p)
                    for (unsigned s = 0; s < spines; ++s)
                        link(leaf[g][r][p], 11 + s, spine[s][p], 1 + g * rails + r, "1xXDR");
                for (unsigned h = 0; h < hosts; ++h) {
                    const auto hca = add_hca(fmt::format("c{} mlx5_{}", g * hosts + h, r));
                    for (unsigned p = 0; p < planes; ++p) link(hca, p + 1, leaf[g][r][p], h + 1, "1xXDR");
                    if (g == 0 && r == 1) of_c.push_back(hca);
                }
            }
    }
    void unplug(unsigned h, unsigned plane) {
        forget(of_c[h], plane + 1);
        forget(leaf[0][1][plane], h + 1);
    }
    std::vector<std::vector<guid>> spine, leaf[groups];
    std::vector<guid> of_c;  ///< second HCAs of group 0
};

std::vector<std::string> slow_hosts(const fabric& f) {
    for (const auto& d : f.defects) UNSCOPED_INFO(d.kind << " " << d.objects.at(0) << ": " << d.evidence);
    std::vector<std::string> out;
    for (const auto& h : f.hosts)
        if (h.slow) out.push_back(h.name);
    return out;
}

}  // namespace

TEST_CASE("an HCA lacks one of its planes", "[topo]") {
    boxes d;
    const auto sound = d.model();
    CHECK(slow_hosts(sound).empty());
    REQUIRE(sound.defects.empty());
    const unsigned plane = GENERATE(0u, 2u);
    d.unplug(1, plane);
    const auto f = d.model();
    CHECK(slow_hosts(f) == std::vector<std::string>{"c1"});
    REQUIRE(f.defects.size() == 1);
    CHECK(f.defects[0].kind == "missing-plane");
    CHECK(f.defects[0].objects == std::vector<std::string>{"c1 mlx5_1"});
    CHECK(f.defects[0].evidence ==
          fmt::format("3 of 4 planes (600 of 800 Gbit/s): no link to MF0;tor-0-1:Q3400_RA/U{} port 2",
                      plane + 1));
}

TEST_CASE("a chip of a leaf is dead", "[topo]") {
    boxes d;
    const unsigned plane = GENERATE(0u, 3u);
    for (unsigned h = 0; h < hosts; ++h) d.unplug(h, plane);
    for (unsigned s = 0; s < spines; ++s) {
        d.forget(d.leaf[0][1][plane], 11 + s);
        d.forget(d.spine[s][plane], 2);
    }
    const bool listed = GENERATE(true, false);
    if (!listed) d.remove(d.leaf[0][1][plane]);
    const auto f = d.model();
    CHECK(slow_hosts(f) == std::vector<std::string>{"c0", "c1", "c2"});
    REQUIRE(f.defects.size() == 1);
    CHECK(f.defects[0].kind == "missing-plane");
    CHECK(f.defects[0].objects[0] == (listed ? fmt::format("MF0;tor-0-1:Q3400_RA/U{}", plane + 1)
                                             : fmt::format("tor-0-1 U{}", plane + 1)));
    CHECK(f.leaf_groups.size() == groups);
}

TEST_CASE("the whole cable of an HCA is out", "[topo]") {
    boxes d;
    for (unsigned p = 0; p < planes; ++p) d.unplug(1, p);
    const auto f = d.model();
    CHECK(slow_hosts(f).empty());
    REQUIRE(f.defects.size() == 1);
    CHECK(f.defects[0].kind == "missing-rail");
}

}  // namespace test_planes
