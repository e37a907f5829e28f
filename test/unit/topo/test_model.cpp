// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/reader.hpp>
#include <banyan/topo/snapshot.hpp>
#include <catch2/catch.hpp>

#include "fixtures.hpp"

namespace test_model {

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

TEST_CASE("an HCA with a factory name goes to the host on its port of the other leaves", "[topo]") {
    const auto f = build(replaced(fixture("ibnetdiscover.txt"), "\"gpu0003 mlx5_2\"",
                                  "\"MT4129 ConnectX7   Mellanox Technologies\""));
    CHECK(f.hosts.size() == 16);
    const auto& hcas = f.hosts[find_host(f, "gpu0003")].hcas;
    REQUIRE(hcas.size() == 8);
    CHECK(f.hcas[hcas[2]].confidence < 1.0001);
    CHECK(count(f, "factory-name") == 1);
    CHECK(count(f, "missing-rail") == 0);
    CHECK(f.defects.size() == 1);
}

TEST_CASE("a host whose every name is a factory's is listed, never lost", "[topo]") {
    auto text = fixture("ibnetdiscover.txt");
    for (int device = 0; device < 8; ++device)
        text = replaced(text, "\"gpu0003 mlx5_" + std::to_string(device) + "\"",
                        "\"MT4129 ConnectX7   Mellanox Technologies\"");
    const auto f = build(text);
    CHECK(f.hosts.size() == 15);
    CHECK(std::count_if(f.excluded.begin(), f.excluded.end(), [](auto& e) {
              return e.kind == "unattributed" && e.why.find("7 others") != std::string::npos;
          }) == 8);
    CHECK(count(f, "factory-name") == 8);
}

TEST_CASE("an odd cable does not join or split groups", "[topo]") {
    // gpu0001's rail 0 and rail 1 exchanged: still one group, still eight rails, and the two are named.
    auto text = replaced(fixture("ibnetdiscover.txt"), "gpu0001 mlx5_0", "gpu0001 mlx5_X");
    text = replaced(replaced(text, "gpu0001 mlx5_1", "gpu0001 mlx5_0"), "gpu0001 mlx5_X", "gpu0001 mlx5_1");
    const auto f = build(text);
    CHECK(f.leaf_groups.size() == 1);
    CHECK(f.leaf_groups[0].leaves.size() == 8);
    CHECK(f.switches[f.leaf_groups[0].leaves[0]].name == "MF0;leaf-01:MQM9790/U1");
    REQUIRE(f.defects.size() == 1);
    CHECK(f.defects[0].kind == "swapped-cables");
    CHECK(f.defects[0].objects == std::vector<std::string>{"gpu0001 mlx5_1", "gpu0001 mlx5_0"});
}

TEST_CASE("a host that lost all rails but one is still a compute host", "[topo]") {
    auto text = fixture("ibnetdiscover.txt");
    for (int device = 1; device < 8; ++device) {
        const auto name = "\"gpu0009 mlx5_" + std::to_string(device) + "\"";
        // The head of its record, and the line of the leaf that leads to it.
        for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name)) {
            const auto start = text.rfind('\n', at);
            text.erase(start, text.find('\n', at) - start);
        }
    }
    const auto f = build(text);
    CHECK(find_host(f, "gpu0009") != none);
    CHECK(count(f, "missing-rail") == 1);
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

}  // namespace test_model
