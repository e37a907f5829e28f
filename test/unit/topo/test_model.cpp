// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/reader.hpp>
#include <banyan/topo/snapshot.hpp>
#include <catch2/catch.hpp>

#include "fixtures.hpp"

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

std::string replaced(std::string text, const std::string& what, const std::string& with) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
        text.replace(at, what.size(), with);
    return text;
}

fabric build(const std::string& text) { return build_fabric(read_ibnetdiscover(text).value()); }

std::size_t count(const fabric& f, const std::string& kind) {
    return static_cast<std::size_t>(
        std::count_if(f.defects.begin(), f.defects.end(), [&](const auto& d) { return d.kind == kind; }));
}

}  // namespace

TEST_CASE("a rail-optimised fabric: one group of eight rails", "[topo]") {
    const auto f = model_of("ibnetdiscover.txt");
    CHECK(f.hosts.size() == 16);
    CHECK(f.switches.size() == 12);
    CHECK(f.links.size() == 257);
    REQUIRE(f.leaf_groups.size() == 1);
    REQUIRE(f.leaf_groups[0].leaves.size() == 8);
    for (std::size_t rail = 0; rail < 8; ++rail)
        CHECK(f.switches[f.leaf_groups[0].leaves[rail]].name ==
              "MF0;leaf-0" + std::to_string(rail + 1) + ":MQM9790/U1");
    for (const auto& h : f.hosts) {
        REQUIRE(h.hcas.size() == 8);
        CHECK(h.confidence == 1.0);
        for (std::size_t i = 0; i < 8; ++i) CHECK(f.hcas[h.hcas[i]].rail == i);
    }
    REQUIRE(f.excluded.size() == 1);
    CHECK(f.excluded[0].kind == "ufm");
    CHECK(f.excluded[0].name == "sm01 mlx5_0");
    CHECK(f.defects.empty());
}

TEST_CASE("three levels with aggregation nodes: two groups, cores above the spines", "[topo]") {
    const auto f = model_of("ibnetdiscover-3level-sharp.txt");
    CHECK(f.hosts.size() == 32);
    CHECK(f.leaf_groups.size() == 2);
    CHECK(std::count_if(f.switches.begin(), f.switches.end(), [](auto& s) { return s.level == 0; }) == 16);
    CHECK(std::count_if(f.switches.begin(), f.switches.end(), [](auto& s) { return s.level == 1; }) == 8);
    CHECK(std::count_if(f.switches.begin(), f.switches.end(), [](auto& s) { return s.level == 2; }) == 4);
    CHECK(std::count_if(f.excluded.begin(), f.excluded.end(), [](auto& e) { return e.kind == "sharp"; }) ==
          28);
}

TEST_CASE("a classic fat tree: every leaf is a group of one rail", "[topo]") {
    const auto f = model_of("ibnetdiscover-fattree3.txt");
    CHECK(f.leaf_groups.size() == 8);
    for (const auto& g : f.leaf_groups) CHECK(g.leaves.size() == 1);
}

TEST_CASE("a lost host, spine and link show", "[topo]") {
    const auto f = model_of("ibnetdiscover-after-faults.txt");
    CHECK(f.hosts.size() == 15);
    CHECK(f.switches.size() == 11);
    CHECK(find_host(f, "gpu0005") == none);
    REQUIRE(count(f, "missing-uplink") == 1);
    CHECK(f.defects[0].objects == std::vector<std::string>{"MF0;leaf-02:MQM9790/U1"});
}

TEST_CASE("an HCA with a factory name is listed, never lost", "[topo]") {
    const auto f = build(replaced(fixture("ibnetdiscover.txt"), "\"gpu0003 mlx5_2\"",
                                  "\"MT4129 ConnectX7   Mellanox Technologies\""));
    CHECK(f.hosts.size() == 16);
    CHECK(f.hosts[find_host(f, "gpu0003")].hcas.size() == 7);
    CHECK(count(f, "factory-name") == 1);
    CHECK(count(f, "missing-rail") == 1);
    CHECK(std::count_if(f.excluded.begin(), f.excluded.end(),
                        [](auto& e) { return e.kind == "unattributed"; }) == 1);
}

TEST_CASE("an odd cable does not join or split groups", "[topo]") {
    // gpu0001's rail 0 and rail 1 exchanged: still one group, still eight rails.
    auto text = replaced(fixture("ibnetdiscover.txt"), "gpu0001 mlx5_0", "gpu0001 mlx5_X");
    text = replaced(replaced(text, "gpu0001 mlx5_1", "gpu0001 mlx5_0"), "gpu0001 mlx5_X", "gpu0001 mlx5_1");
    const auto f = build(text);
    CHECK(f.leaf_groups.size() == 1);
    CHECK(f.leaf_groups[0].leaves.size() == 8);
    CHECK(f.switches[f.leaf_groups[0].leaves[0]].name == "MF0;leaf-01:MQM9790/U1");
}

TEST_CASE("a doubled GUID is a defect, and the first record counts", "[topo]") {
    const auto text = fixture("ibnetdiscover.txt");
    const auto start = text.find("\nvendid", text.find("Ca\t1"));
    const auto end = text.find("\nvendid", start + 1);
    const auto f = build(text + text.substr(start, end - start) + "\n");
    CHECK(count(f, "duplicate-guid") == 1);
    CHECK(f.hosts.size() == 16);
}

TEST_CASE("a port that calls its peer a router while the record says switch", "[topo]") {
    auto text = fixture("ibnetdiscover.txt");
    text.replace(text.find("\"S-", text.find("]\t\"S-")), 3, "\"R-");
    const auto f = build(text);
    CHECK(f.links.size() == model_of("ibnetdiscover.txt").links.size());
    CHECK(decode_snapshot(encode_snapshot(f)).has_value());
}
