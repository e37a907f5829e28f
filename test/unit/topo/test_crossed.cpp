// SPDX-License-Identifier: BSD-3-Clause
//
// Crossed cables of which one end has no name: told by the GUIDs of its host's other HCAs.
#include <algorithm>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"

namespace test_crossed {

using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

constexpr const char* factory = "MT4129 ConnectX7   Mellanox Technologies";

fabric with_factory_name(const dump_writer& d, std::initializer_list<const char*> names) {
    auto text = d.text();
    for (const auto* name : names)
        for (std::size_t at = 0; (at = text.find(fmt::format("\"{}\"", name), at)) != std::string::npos; ++at)
            text.replace(at + 1, std::string(name).size(), factory);
    return build_fabric(read_ibnetdiscover(std::move(text)).value());
}

std::vector<defect> but_names(const fabric& f) {
    std::vector<defect> out;
    for (const auto& d : f.defects)
        if (d.kind != "factory-name") out.push_back(d);
    for (const auto& d : out) UNSCOPED_INFO(d.kind + " " + d.objects.at(0) + ": " + d.evidence);
    return out;
}

std::string guess(guid id, const std::string& host) {
    return fmt::format("0x{:016x} (taken for {})", id, host);
}

}  // namespace

TEST_CASE("cables of two hosts exchanged, one of the HCAs without a name", "[topo][crossed]") {
    rail_fabric d(3, 8, 4, 4);
    d.link(d.hcas[1][2][1], 1, d.leaves[1][1], 6);
    d.link(d.hcas[1][5][1], 1, d.leaves[1][1], 3);
    const auto f = with_factory_name(d, {"g1n02 mlx5_1"});
    const auto found = but_names(f);
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == "swapped-cables");
    CHECK(found[0].objects == std::vector<std::string>{guess(d.hcas[1][2][1], "g1n02"), "g1n05 mlx5_1"});
    CHECK(found[0].confidence == Approx(0.85));
    CHECK(found[0].evidence.ends_with("going by the GUIDs"));
    CHECK(f.hosts[find_host(f, "g1n02")].hcas.size() == 4);
}

TEST_CASE("cables of one host exchanged, one of the HCAs without a name", "[topo][crossed]") {
    for (const unsigned nameless : {0u, 1u, 3u}) {
        rail_fabric d(3, 8, 4, 4);
        d.link(d.hcas[1][2][nameless], 1, d.leaves[1][2], 3);
        d.link(d.hcas[1][2][2], 1, d.leaves[1][nameless], 3);
        const auto f = with_factory_name(d, {fmt::format("g1n02 mlx5_{}", nameless).c_str()});
        INFO(nameless);
        const auto found = but_names(f);
        REQUIRE(found.size() == 1);
        CHECK(found[0].kind == "swapped-cables");
        CHECK(found[0].confidence == Approx(0.85));
    }
}

TEST_CASE("both ends without a name", "[topo][crossed]") {
    rail_fabric d(3, 8, 4, 4);
    d.link(d.hcas[1][2][1], 1, d.leaves[1][1], 6);
    d.link(d.hcas[1][5][1], 1, d.leaves[1][1], 3);
    const auto found = but_names(with_factory_name(d, {"g1n02 mlx5_1", "g1n05 mlx5_1"}));
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == "swapped-cables");
}

TEST_CASE("GUIDs that lie between but in no step are less sure", "[topo][crossed]") {
    rail_fabric d(3, 8, 4, 4);
    d.link(d.hcas[1][2][1], 1, d.leaves[1][1], 6);
    d.link(d.hcas[1][5][1], 1, d.leaves[1][1], 3);
    auto text = d.text();
    // The first HCA of the host comes from elsewhere in the same gap.
    const auto old_id = fmt::format("{:x}", d.hcas[1][2][0]),
               new_id = fmt::format("{:x}", d.hcas[1][2][0] + 5);
    for (std::size_t at = 0; (at = text.find("000" + old_id, at)) != std::string::npos; ++at)
        text.replace(at, old_id.size() + 3, "000" + new_id);
    for (std::size_t at = 0; (at = text.find("\"g1n02 mlx5_1\"", at)) != std::string::npos; ++at)
        text.replace(at, 14, fmt::format("\"{}\"", factory));
    const auto found = but_names(build_fabric(read_ibnetdiscover(text).value()));
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == "swapped-cables");
    CHECK(found[0].confidence == Approx(0.7));
}

TEST_CASE("factory names in a sound fabric show no crossed cable", "[topo][crossed]") {
    rail_fabric d(3, 8, 4, 4);
    for (const unsigned r : {0u, 1u, 2u, 3u}) {
        const auto f = with_factory_name(
            d, {fmt::format("g1n02 mlx5_{}", r).c_str(), fmt::format("g2n06 mlx5_{}", r).c_str()});
        CHECK(but_names(f).empty());
        CHECK(f.excluded.empty());
        CHECK(f.hcas[f.hosts[find_host(f, "g1n02")].hcas[r]].rail == r);
    }
}

TEST_CASE("GUIDs in no order give nothing away", "[topo][crossed]") {
    rail_fabric d(3, 8, 4, 4);
    d.link(d.hcas[1][2][1], 1, d.leaves[1][1], 6);
    d.link(d.hcas[1][5][1], 1, d.leaves[1][1], 3);
    auto text = d.text();
    // The HCA without a name comes from another batch.
    const auto old_id = fmt::format("{:016x}", d.hcas[1][2][1]);
    for (std::size_t at = 0; (at = text.find(old_id, at)) != std::string::npos; ++at)
        text.replace(at, 16, "00000000c0ffee00");
    for (std::size_t at = 0; (at = text.find("\"g1n02 mlx5_1\"", at)) != std::string::npos; ++at)
        text.replace(at, 14, fmt::format("\"{}\"", factory));
    const auto f = build_fabric(read_ibnetdiscover(text).value());
    for (const auto& x : f.defects) CHECK(x.kind != "swapped-cables");
    CHECK(f.excluded.size() == 1);
}

TEST_CASE("a GUID in step by chance takes no HCA out of its host's gap", "[topo][crossed]") {
    rail_fabric d(3, 8, 4, 4);
    d.forget(d.leaves[0][3], 6);
    d.forget(d.hcas[0][5][3], 1);
    auto text = d.text();
    const auto replace_all = [&](const std::string& old, const std::string& by) {
        for (std::size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += by.size())
            text.replace(at, old.size(), by);
    };
    // The nameless HCA has the GUID that the fourth of the other host would have.
    replace_all(fmt::format("{:016x}", d.hcas[0][5][3]), "00000000c0ffee00");
    replace_all("\"g0n05 mlx5_3\"", fmt::format("\"{}\"", factory));
    replace_all(fmt::format("{:016x}", d.hcas[1][2][1]), fmt::format("{:016x}", d.hcas[0][5][3]));
    replace_all("\"g1n02 mlx5_1\"", fmt::format("\"{}\"", factory));
    const auto f = build_fabric(read_ibnetdiscover(text).value());
    const auto found = but_names(f);
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == "missing-rail");
    CHECK(found[0].objects == std::vector<std::string>{"g0n05"});
    CHECK(f.hosts[find_host(f, "g1n02")].hcas.size() == 4);
}

TEST_CASE("leaves of one group stay one where many of their HCAs have no name", "[topo][crossed]") {
    // Neighbours on the first leaf and on the other two are less than half of those that names show there.
    rail_fabric d(4, 8, 3, 4);
    d.forget(d.leaves[1][1], 2);
    d.link(d.hcas[1][1][1], 1, d.leaves[2][1], 9);
    const auto f = with_factory_name(d, {"g1n02 mlx5_0", "g1n05 mlx5_0", "g1n07 mlx5_0", "g1n04 mlx5_2"});
    const auto found = but_names(f);
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == "foreign-leaf");
    CHECK(f.leaf_groups.size() == 4);
    CHECK(f.excluded.empty());
    for (const auto& g : f.leaf_groups) CHECK(g.leaves.size() == 3);
}

namespace {

/// Hosts sit at other ports on each leaf, and GUIDs follow no order: nothing shows whose an HCA is.
fabric without_order(const std::vector<std::string>& nameless, const std::vector<std::string>& gone) {
    dump_writer d;
    const auto spine = d.add_switch("spine-1");
    std::vector<guid> leaves;
    for (unsigned r = 0; r < 3; ++r) {
        leaves.push_back(d.add_switch(fmt::format("leaf-{}", r)));
        for (unsigned n = 0; n < 4; ++n) d.link(leaves[r], 33 + n, spine, 4 * r + n + 1);
    }
    for (unsigned r = 0; r < 3; ++r)
        for (unsigned at = 0; at < 8; ++at) {
            const auto host = (at * (2 * r + 1) + 3 * r) % 8;
            const auto name = fmt::format("n{} mlx5_{}", host, r);
            if (std::find(gone.begin(), gone.end(), name) != gone.end()) continue;
            const bool known = std::find(nameless.begin(), nameless.end(), name) == nameless.end();
            d.link(d.add_hca(known ? name : factory), 1, leaves[r], at + 1);
        }
    return d.model();
}

}  // namespace

TEST_CASE("no host is accused of what a nameless HCA on its leaf may be", "[topo][crossed]") {
    const auto f = without_order({"n3 mlx5_1", "n6 mlx5_1", "n2 mlx5_0"}, {});
    CHECK(but_names(f).empty());
    CHECK(f.excluded.size() == 3);
}

TEST_CASE("of two hosts that lack an HCA one has the nameless one: half sure of each", "[topo][crossed]") {
    const auto found = but_names(without_order({"n3 mlx5_1"}, {"n6 mlx5_1"}));
    REQUIRE(found.size() == 2);
    for (const auto& x : found) {
        CHECK(x.kind == "missing-rail");
        CHECK(x.confidence == Approx(0.475));
        CHECK(x.evidence ==
              "2 HCAs with a link, most hosts of g1 have 3; some on its leaves have no name, and may be its "
              "own");
    }
    // On another leaf it explains nothing.
    const auto other = but_names(without_order({"n3 mlx5_1"}, {"n6 mlx5_2"}));
    REQUIRE(other.size() == 1);
    CHECK(other[0].objects == std::vector<std::string>{"n6"});
    CHECK(other[0].confidence == Approx(0.95));
}

TEST_CASE("HCAs of no group are on no port of one together", "[topo][crossed]") {
    rail_fabric d(2, 2, 2, 2);
    const auto f = with_factory_name(d, {"g0n00 mlx5_0", "g0n00 mlx5_1", "g0n01 mlx5_0", "g0n01 mlx5_1",
                                         "g1n00 mlx5_0", "g1n00 mlx5_1", "g1n01 mlx5_0", "g1n01 mlx5_1"});
    REQUIRE(f.excluded.size() == 8);
    for (const auto& e : f.excluded) CHECK(e.why == "nothing shows which host it belongs to");
}

}  // namespace test_crossed
