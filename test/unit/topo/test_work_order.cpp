// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/capacity.hpp>
#include <banyan/topo/work_order.hpp>
#include <catch2/catch.hpp>

#include "dump_writer.hpp"
#include "fixtures.hpp"
#include "topo/cli/csv.hpp"

namespace test_work_order {

using namespace banyan::topo;
using namespace banyan::topo::test;
using change = work_item::change;

namespace {

std::vector<work_item> order(const fabric& before, const fabric& after) {
    return work_order(before, after, diff(before, after));
}

std::size_t count(const std::vector<work_item>& items, change what) {
    return static_cast<std::size_t>(
        std::count_if(items.begin(), items.end(), [&](const work_item& i) { return i.what == what; }));
}

}  // namespace

TEST_CASE("a switch, a host and a cable to look after", "[topo]") {
    const auto before = model_of("ibnetdiscover.txt"), after = model_of("ibnetdiscover-after-faults.txt");
    const auto items = order(before, after);
    REQUIRE(items.size() == 3);
    CHECK(items[0].what == change::lost_switch);
    CHECK(items[0].links == 32);
    CHECK(items[1].what == change::lost_host);
    CHECK(items[1].at.node_name == "gpu0005");
    CHECK(items[1].links == 8);
    CHECK(items[2].what == change::lost_link);
    CHECK(items[2].connector == "17/1");
    CHECK(items[2].to_connector == "3/1");
    CHECK(items[2].to_do.find("reseat") != std::string::npos);
    // The other way round all of it is new.
    const auto back = order(after, before);
    CHECK(back.size() == 3);
    CHECK(count(back, change::added) == 3);
    CHECK(order(before, before).empty());
}

TEST_CASE("cables that were exchanged, moved, pulled and slowed", "[topo]") {
    rail_fabric before(1, 4, 2, 2), after(1, 4, 2, 2);
    const auto h = after.hcas[0];
    const auto leaves = after.leaves[0];
    // n00's two cables are exchanged, n01's first leads into a free port, n02's first is out, n03's first is
    // slow.
    after.link(h[0][0], 1, leaves[1], 1);
    after.link(h[0][1], 1, leaves[0], 1);
    after.forget(leaves[0], 2);
    after.link(h[1][0], 1, leaves[1], 20);
    after.forget(leaves[0], 3);
    after.forget(h[2][0], 1);
    after.link(h[3][0], 1, leaves[0], 4, "2xNDR");
    const auto items = order(before.model(), after.model());
    CHECK(items.size() == 5);
    REQUIRE(count(items, change::moved) == 3);
    CHECK(count(items, change::lost_link) == 1);
    CHECK(count(items, change::slower) == 1);
    for (const auto& i : items) {
        INFO(i.to_do);
        if (i.host == "g0n00") CHECK(i.to_do.find("exchange it with the cable of g0n00 mlx5_") == 0);
        if (i.host == "g0n01") CHECK(i.to_do == "put it back into leaf-0-0 port 2 (connector 1/2)");
        if (i.host == "g0n02") CHECK(i.device == "mlx5_0");
        if (i.host == "g0n03") CHECK(gbps(i.after) < gbps(i.before));
    }
}

TEST_CASE("connectors on the front", "[topo]") {
    switch_node sw;
    const auto of = [&](std::uint16_t device, std::uint16_t ports, std::uint16_t port) {
        sw.device = device;
        sw.ports = ports;
        return connector_of(sw, port);
    };
    CHECK(of(0xd2f2, 65, 1) == "1/1");
    CHECK(of(0xd2f2, 64, 64) == "32/2");
    CHECK(of(0xd2f2, 65, 65).empty());      // the aggregation node's
    CHECK(of(0xd2f2, 129, 128) == "32/4");  // split
    CHECK(of(0xd2f0, 41, 40) == "40");
    CHECK(of(0xd2f0, 81, 3) == "2/1");
    CHECK(of(0xcb20, 36, 36) == "36");
    CHECK(of(0xd2f2, 17, 3).empty());  // a part of a chassis: not known
    CHECK(of(0, 65, 3).empty());
    sw.name = "MF0;dir1:CS9500/L03/U2";
    CHECK(of(0xd2f2, 65, 3).empty());
}

TEST_CASE("no cell is a formula", "[topo]") {
    using banyan::topo::cli::csv_cell;
    using banyan::topo::cli::csv_row;
    CHECK(csv_cell("leaf-01") == "leaf-01");
    CHECK(csv_cell("=HYPERLINK(\"http://x\")") == "\"'=HYPERLINK(\"\"http://x\"\")\"");
    for (const char c : {'=', '+', '-', '@', '\t'}) CHECK(csv_cell(std::string(1, c) + "1")[0] == '\'');
    // Full width, small, other minuses, and what is not seen before it.
    for (const std::string sign : {"\uff1d", "\uff0b", "\uff0d", "\uff20", "\ufe66", "\ufe62", "\u2212",
                                   "\u2010", "\u207a", "\ufeff=", "\u00a0=", "\u200b=", " =", "\r=", "\n="}) {
        INFO(sign);
        CHECK(csv_cell(sign + "1").find('\'') <= 1);
    }
    for (const std::string name : {"n1", "\u00e4sir", "\u5317\u4eac", "7", "MF0;x", "(none)"})
        CHECK(csv_cell(name) == name);
    CHECK(csv_cell("a,b\n") == "\"a,b\n\"");
    CHECK(csv_row({"a", "", "c"}) == "a,,c\r\n");
}

TEST_CASE("each leaf's oversubscription", "[topo]") {
    rail_fabric w(2, 8, 2, 4);
    w.forget(w.leaves[1][0], 33);
    w.forget(w.spines[0], 3);
    const auto f = w.model();
    const auto loads = leaf_loads(f);
    REQUIRE(loads.size() == 4);
    CHECK(loads[0].down_gbps == 3200);
    CHECK(loads[0].ratio() == 2);
    CHECK(loads[2].up_gbps == 1200);
    CHECK(loads[2].ratio() == Approx(8.0 / 3));
    CHECK(leaf_loads(groups_of({4})).empty());
}

}  // namespace test_work_order
