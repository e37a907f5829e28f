// SPDX-License-Identifier: BSD-3-Clause
//
// LIDs: which ports may share one, and which have none.
#include <catch2/catch.hpp>

#include "dump_writer.hpp"

namespace test_lids {

using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

/// The fabric with the LID of every HCA's port as `lid_of(name, its own)` says.
template <class LidOf>
fabric with_lids(const dump_writer& w, LidOf lid_of) {
    auto d = read_ibnetdiscover(w.text()).value();
    for (auto& n : d.nodes) {
        if (n.kind != node_kind::hca) continue;
        for (auto i = n.first_port; i < n.first_port + n.port_count; ++i)
            d.ports[i].lid = lid_of(n.name, d.ports[i].lid);
        n.lid = d.ports[n.first_port].lid;
    }
    auto f = build_fabric(d);
    for (const auto& each : f.defects)
        UNSCOPED_INFO(each.kind << " " << each.objects.at(0) << ": " << each.evidence);
    return f;
}

}  // namespace

TEST_CASE("ports that were given no LID are told once, and their hosts do not compute", "[topo]") {
    const rail_fabric d(3, 4, 2, 2);
    const auto f = with_lids(d, [](auto name, auto own) { return name.starts_with("g1") ? 65535u : own; });
    REQUIRE(f.defects.size() == 1);
    CHECK(f.defects[0].kind == "no-lid");
    CHECK(f.defects[0].objects == std::vector<std::string>{"g1n[00-03]"});
    CHECK(f.defects[0].evidence ==
          "8 ports have no LID: the subnet manager has not configured them (hosts g1n[00-03])");
    CHECK(f.hosts.size() == 8);
    CHECK(f.excluded.size() == 8);
    for (const auto& e : f.excluded) CHECK(e.kind == "no-lid");
}

TEST_CASE("the ports of one HCA may share a LID, two HCAs may not", "[topo]") {
    dump_writer d;
    std::vector<guid> leaves;
    for (const auto* name : {"MF0;x-1:Q3400/U1", "MF0;x-1:Q3400/U2"}) leaves.push_back(d.add_switch(name));
    for (unsigned h = 0; h < 4; ++h) {
        const auto hca = d.add_hca("n" + std::to_string(h) + " mlx5_0");
        for (unsigned plane = 0; plane < 2; ++plane) d.link(hca, plane + 1, leaves[plane], h + 1, "1xXDR");
    }
    const auto lid_of = [](auto name, std::uint32_t) { return 500u + static_cast<unsigned>(name[1]); };
    CHECK(with_lids(d, lid_of).defects.empty());
    const auto f =
        with_lids(d, [&](auto name, auto own) { return lid_of(name[1] == '3' ? "n2" : name, own); });
    REQUIRE(f.defects.size() == 1);
    CHECK(f.defects[0].kind == "duplicate-lid");
}

}  // namespace test_lids
