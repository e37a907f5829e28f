// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/last_places.hpp>
#include <catch2/catch.hpp>

#include "dump_writer.hpp"

namespace test_last_places {

using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

using names = std::vector<std::string>;

/// The dump of a fabric some of whose hosts (group, host) are off.
dump without(rail_fabric d, const std::vector<std::pair<unsigned, unsigned>>& off) {
    for (const auto& [g, h] : off)
        for (std::size_t r = 0; r < d.hcas[g][h].size(); ++r)
            d.forget(d.leaves[g][r], h + 1), d.remove(d.hcas[g][h][r]);
    return read_ibnetdiscover(d.text()).value();
}

void check_same(const fabric& a, const fabric& b) {
    REQUIRE(a.hosts.size() == b.hosts.size());
    for (std::size_t h = 0; h < a.hosts.size(); ++h) {
        CHECK(a.hosts[h].name == b.hosts[h].name);
        CHECK(a.hosts[h].leaf_group == b.hosts[h].leaf_group);
        REQUIRE(a.hosts[h].hcas.size() == b.hosts[h].hcas.size());
        for (std::size_t i = 0; i < a.hosts[h].hcas.size(); ++i) {
            const auto &x = a.hcas[a.hosts[h].hcas[i]], &y = b.hcas[b.hosts[h].hcas[i]];
            CHECK(std::tie(x.id, x.rail, x.leaf, x.leaf_port, x.device) ==
                  std::tie(y.id, y.rail, y.leaf, y.leaf_port, y.device));
            CHECK(x.rate == y.rate);
        }
    }
    CHECK(a.links.size() == b.links.size());
    CHECK(b.defects.empty());
}

}  // namespace

TEST_CASE("hosts that are off are where they were", "[topo]") {
    const rail_fabric all(2, 8, 4, 4);
    const auto last = all.model();
    const auto off = GENERATE(std::vector<std::pair<unsigned, unsigned>>{},
                              std::vector<std::pair<unsigned, unsigned>>{{0, 0}, {0, 7}, {1, 3}},
                              std::vector<std::pair<unsigned, unsigned>>{
                                  {1, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 6}, {1, 7}});
    const auto today = without(all, off);
    const auto gone = hosts_gone(today, last);
    CHECK(gone.size() == off.size());
    check_same(last, build_fabric(with_last_places(today, last, gone)));
    CHECK(build_fabric(with_last_places(today, last, {})).hosts.size() == 16 - off.size());
}

TEST_CASE("a host that is on, or elsewhere, is where it is", "[topo]") {
    rail_fabric all(2, 8, 4, 4);
    const auto last = all.model();
    // g0n01 came back in the other group.
    for (unsigned r = 0; r < 4; ++r) {
        all.forget(all.leaves[0][r], 1), all.forget(all.hcas[0][0][r], 1);
        all.link(all.hcas[0][0][r], 1, all.leaves[1][r], 20);
    }
    const auto today = read_ibnetdiscover(all.text()).value();
    CHECK(hosts_gone(today, last).empty());
    const auto f = build_fabric(with_last_places(today, last, {last.hosts[0].name}));
    CHECK(f.hosts[find_host(f, last.hosts[0].name)].leaf_group == f.hosts[find_host(f, "g1n02")].leaf_group);
}

TEST_CASE("a port that has another host by now, and a switch that is gone, keep nothing", "[topo]") {
    const rail_fabric all(2, 8, 4, 4);
    const auto last = all.model();
    auto changed = all;
    for (unsigned r = 0; r < 4; ++r) {
        changed.forget(changed.leaves[0][r], 1), changed.remove(changed.hcas[0][0][r]);
        changed.link(changed.add_hca("new mlx5_" + std::to_string(r)), 1, changed.leaves[0][r], 1);
    }
    const auto f = build_fabric(
        with_last_places(read_ibnetdiscover(changed.text()).value(), last, {last.hosts[0].name}));
    CHECK(find_host(f, last.hosts[0].name) == none);
    CHECK(find_host(f, "new") != none);
    const auto elsewhere = rail_fabric(1, 2, 1, 1).text();
    fabric other = last;
    for (auto& sw : other.switches) sw.id += 1u << 30;
    for (auto& h : other.hcas) h.id += 1u << 30;
    const auto two = read_ibnetdiscover(elsewhere).value();
    CHECK(build_fabric(with_last_places(two, other, {last.hosts[0].name})).hosts.size() == 2);
}

}  // namespace test_last_places
