// SPDX-License-Identifier: BSD-3-Clause
//
// Crossed cables of which one end has no name: told by the GUIDs of its host's other HCAs.
#include <algorithm>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"

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
