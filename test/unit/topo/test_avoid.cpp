// SPDX-License-Identifier: BSD-3-Clause
//
// Links that are up and that new jobs are kept off.
#include <algorithm>

#include <banyan/topo/avoid.hpp>
#include <banyan/topo/capacity.hpp>
#include <banyan/topo/snapshot.hpp>
#include <catch2/catch.hpp>

#include "dump_writer.hpp"
#include "fixtures.hpp"

namespace test_avoid {

using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

std::size_t from_group(const fabric& f, const placement& p, const std::string& prefix) {
    return static_cast<std::size_t>(std::count_if(
        p.nodes.begin(), p.nodes.end(), [&](auto h) { return f.hosts[h].name.starts_with(prefix); }));
}

}  // namespace

TEST_CASE("the list of links to avoid is read as it was written, or not at all", "[topo]") {
    const std::vector<avoided_link> all{{{0xab, 33}, {0xcd, 1}, "f00012"}, {{0xab, 34}, {}, "f00013"}};
    const auto text = avoid_text(all);
    CHECK(read_avoid(text).value() == all);
    CHECK(read_avoid(avoid_text({})).value().empty());
    // Half of a file is no shorter list.
    for (std::size_t cut = 0; cut < text.size(); ++cut) {
        INFO(cut);
        CHECK_FALSE(read_avoid(std::string_view(text).substr(0, cut)));
    }
    for (const char* wrong :
         {"", "\n", "banyan-avoid 1 0", "banyan-avoid 2 0\n", "banyan-avoid 1 1\n", "banyan-avoid 1 0\n\n",
          "banyan-avoid 1 1\n0 1 0 1 f1\n", "banyan-avoid 1 1\nab 70000 0 0 f1\n",
          "banyan-avoid 1 1\nab 1 0 0 \n", "banyan-avoid 1 1\nab 1 0 0 f1 x\n",
          "banyan-avoid 1 18446744073709551616\n", "banyan-avoid 1 10001\n"}) {
        INFO(wrong);
        CHECK_FALSE(read_avoid(wrong));
    }
}

TEST_CASE("jobs are kept off a host whose cable is to be avoided, until it is well", "[topo]") {
    rail_fabric w(1, 8, 2, 2);
    auto f = w.model();
    const auto before = encode_snapshot(f);
    const auto host = find_host(f, "g0n02");
    // By the switch's end alone, and by that of the HCA alone.
    const avoided_link one = GENERATE_COPY(avoided_link{{w.leaves[0][1], 3}, {}, "f1"},
                                           avoided_link{{w.hcas[0][2][1], 1}, {}, "f1"});
    CHECK(mark_avoided(f, {{one}}) == 1);
    CHECK(f.links[find_link(f, one)].avoid);
    const auto placed = place(f, all_hosts(f), make("tp=2,dp=7", 7));
    REQUIRE(placed);
    CHECK(std::find(placed->nodes.begin(), placed->nodes.end(), host) == placed->nodes.end());
    CHECK(place(f, all_hosts(f), make("tp=2,dp=8", 8)));  // where there is no other
    CHECK(encode_snapshot(f) == before);                  // which is another's file
    CHECK(mark_avoided(f, {}) == 0);
    CHECK_FALSE(f.hosts[host].slow);
}

TEST_CASE("jobs are kept off the hosts below a cable that is to be avoided", "[topo]") {
    rail_fabric w(3, 8, 1, 8);
    auto f = w.model();
    const auto cost = f.tier_cost[tier::spine];
    const avoided_link one{{w.leaves[0][0], 33}, {}, "f1"};
    const auto twelve = make("dp=12", 12);
    REQUIRE(from_group(f, place(f, all_hosts(f), twelve).value(), "g0") > 0);
    CHECK(mark_avoided(f, {{one}}) == 1);
    CHECK(f.leaf_groups[f.hosts[find_host(f, "g0n00")].leaf_group].thin);
    CHECK(f.tier_cost[tier::spine] > cost);
    CHECK(from_group(f, place(f, all_hosts(f), twelve).value(), "g0") == 0);
    // More than the others hold.
    CHECK(from_group(f, place(f, all_hosts(f), make("dp=20", 20)).value(), "g0") >= 4);
    // A host with a bad link of its own comes after those.
    const avoided_link own{{w.hcas[0][2][0], 1}, {}, "f2"};
    CHECK(mark_avoided(f, {{one, own}}) == 2);
    const auto most = place(f, all_hosts(f), make("dp=23", 23)).value();
    CHECK(std::find(most.nodes.begin(), most.nodes.end(), find_host(f, "g0n02")) == most.nodes.end());
    CHECK(place(f, all_hosts(f), make("pp=8,dp=3", 24)));
    mark_avoided(f, {});
    CHECK(f.tier_cost[tier::spine] == cost);
    CHECK(from_group(f, place(f, all_hosts(f), twelve).value(), "g0") > 0);
}

TEST_CASE("of a switch's links no more are avoided than it can spare", "[topo]") {
    rail_fabric w(2, 8, 1, 8);  // a cable to each spine, eight up
    const auto f = w.model();
    const auto up = [&](std::uint16_t port) { return avoided_link{{w.leaves[0][0], port}, {}, "f1"}; };
    std::vector<avoided_link> all;
    for (std::uint16_t port = 33; port < 35; ++port) {
        CHECK(room_to_avoid(f, all, up(port), 25));
        all.push_back(up(port));
    }
    const auto third = room_to_avoid(f, all, up(35), 25);
    REQUIRE_FALSE(third);
    CHECK(third.error().code == banyan::errc::exhausted);
    CHECK(third.error().what.find("2 of the 8 links of leaf-0-0 up") != std::string::npos);
    CHECK(room_to_avoid(f, all, up(34), 25));  // counted once, however many tell of it
    CHECK(room_to_avoid(f, all, up(35), 50));
    CHECK(room_to_avoid(f, {}, up(33), 1));  // one always
    // Those to hosts count by themselves.
    CHECK(room_to_avoid(f, all, {{w.leaves[0][0], 3}, {}, "f9"}, 25));
    // The other end has a limit, too: a spine has a cable to each of the two leaves.
    const auto below = room_to_avoid(f, {{{{w.leaves[1][0], 33}, {}, "f1"}}}, up(33), 25);
    REQUIRE_FALSE(below);
    CHECK(below.error().what.find("1 of the 2 links of spine-0 down") != std::string::npos);
    const auto gone = room_to_avoid(f, {}, {{0x77, 1}, {}, "f9"}, 25);
    REQUIRE_FALSE(gone);
    CHECK(gone.error().code == banyan::errc::not_found);
}

}  // namespace test_avoid
