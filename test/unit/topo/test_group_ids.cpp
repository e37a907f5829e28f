// SPDX-License-Identifier: BSD-3-Clause
//
// Ids of leaf groups over several states of a fabric.
#include <algorithm>

#include <banyan/topo/snapshot.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"

namespace test_group_ids {

using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

/// Groups of four hosts with two rails, each of leaves of its own; those that are not on are not there at
/// all.
struct racks : dump_writer {
    explicit racks(const std::vector<bool>& on, unsigned replaced = none) {
        std::vector<guid> spines{add_switch("spine-0"), add_switch("spine-1")};
        for (unsigned g = 0; g < on.size(); ++g)
            for (unsigned r = 0; r < 2; ++r) {
                const auto leaf = add_switch(fmt::format("leaf-{}-{}", g, r));
                for (unsigned s = 0; s < 2; ++s) link(leaf, 33 + s, spines[s], 1 + 2 * g + r);
                leaves.push_back(leaf);
            }
        for (unsigned g = 0; g < on.size(); ++g)
            for (unsigned r = 0; r < 2; ++r) {
                // Another switch in its place.
                const auto leaf =
                    g == replaced ? add_switch(fmt::format("leaf-{}-{}-new", g, r)) : leaves[2 * g + r];
                if (g == replaced)
                    for (unsigned s = 0; s < 2; ++s) link(leaf, 33 + s, spines[s], 41 + r);
                for (unsigned h = 0; on[g] && h < 4; ++h) {
                    hcas.push_back(add_hca(fmt::format("r{}n{} mlx5_{}", g, h, r)));
                    link(hcas.back(), 1, leaf, h + 1);
                }
            }
    }
    std::vector<guid> leaves, hcas;
};

std::string id_of(const fabric& f, const std::string& host) {
    const auto at = find_host(f, host);
    REQUIRE(at != none);
    return f.leaf_groups[f.hosts[at].leaf_group].id;
}

fabric after(const dump_writer& d, const fabric& before) {
    // By way of the file, as it is kept.
    const auto kept = decode_snapshot(encode_snapshot(before)).value();
    build_options o;
    o.previous = &kept;
    return d.model(o);
}

}  // namespace

TEST_CASE("a rack that goes off takes no other's id, and gets its own back", "[topo][ids]") {
    const auto first = racks({true, true, true, true}).model();
    for (unsigned g = 0; g < 4; ++g)
        CHECK(id_of(first, fmt::format("r{}n0", g)) == fmt::format("g{}", g + 1));
    const auto less = after(racks({true, false, true, true}), first);
    CHECK(less.leaf_groups.size() == 3);
    CHECK(id_of(less, "r0n0") == "g1");
    CHECK(id_of(less, "r2n0") == "g3");
    CHECK(id_of(less, "r3n0") == "g4");
    REQUIRE(less.gone_groups.size() == 1);
    CHECK(less.gone_groups[0].id == "g2");
    const auto still = after(racks({true, false, true, true, true}), less);
    CHECK(id_of(still, "r4n0") == "g5");
    const auto again = after(racks({true, true, true, true, true}), still);
    CHECK(id_of(again, "r1n0") == "g2");
    CHECK(id_of(again, "r4n0") == "g5");
    CHECK(again.gone_groups.empty());
    // Without a snapshot they are counted.
    CHECK(id_of(racks({true, false, true, true}).model(), "r2n0") == "g2");
}

TEST_CASE("a group keeps its id when one of its switches is another, or all of them", "[topo][ids]") {
    rail_fabric d(3, 8, 4, 2);
    const auto first = d.model();
    const auto id = id_of(first, "g2n00");
    // One of four leaves.
    rail_fabric other(3, 8, 4, 2);
    const auto fresh = other.add_switch("leaf-2-1-new");
    for (unsigned s = 0; s < 2; ++s) {
        other.forget(other.leaves[2][1], 33 + s);
        other.link(fresh, 33 + s, other.spines[s], 1 + 2 * 4 + 1);
    }
    for (unsigned h = 0; h < 8; ++h) {
        other.forget(other.leaves[2][1], h + 1);
        other.link(other.hcas[2][h][1], 1, fresh, h + 1);
    }
    CHECK(id_of(after(other, first), "g2n00") == id);
    // All: its hosts are left to know it by.
    const auto before = racks({true, true, true}).model();
    const auto replaced = after(racks({true, true, true}, 1), before);
    for (unsigned g = 0; g < 3; ++g)
        CHECK(id_of(replaced, fmt::format("r{}n0", g)) == id_of(before, fmt::format("r{}n0", g)));
}

TEST_CASE("ids are never given twice, whatever the older snapshot says", "[topo][ids]") {
    auto before = racks({true, true, true}).model();
    before.leaf_groups[0].id = "g7";
    before.leaf_groups[1].id = "pod";
    before.leaf_groups[2].id = "g18446744073709551615";
    before.gone_groups = {{"g9", {}}, {"", {before.switches[0].id}}, {"g18446744073709551616", {1, 2, 3}}};
    const auto now = after(racks({true, true, true, true, true}), before);
    std::vector<std::string> ids;
    for (const auto& g : now.leaf_groups) ids.push_back(g.id);
    std::sort(ids.begin(), ids.end());
    CHECK(std::adjacent_find(ids.begin(), ids.end()) == ids.end());
    CHECK(id_of(now, "r0n0") == "g7");
    before.leaf_groups[1].id = before.leaf_groups[2].id = "g7";
    const auto twice = after(racks({true, true, true}), before);
    CHECK(twice.leaf_groups[0].id != twice.leaf_groups[1].id);
    CHECK(twice.leaf_groups[1].id != twice.leaf_groups[2].id);
}

TEST_CASE("the evidence of a defect has the ids that are kept", "[topo][ids]") {
    const auto first = racks({true, true, true}).model();
    racks d({true, false, true});
    d.forget(d.leaves[4], 1);
    d.forget(d.hcas[8], 1);
    const auto now = after(d, first);
    std::vector<std::string> told;
    for (const auto& x : now.defects)
        if (x.kind == "missing-rail") told.push_back(x.evidence);
    CHECK(told == std::vector<std::string>{"1 HCA with a link, most hosts of g3 have 2"});
}

}  // namespace test_group_ids
