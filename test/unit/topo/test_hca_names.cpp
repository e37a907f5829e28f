// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"
#include "topo/model/device_name.hpp"
#include "topo/model/hca_names.hpp"

namespace test_hca_names {

using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

using trust = hca_name::trust;

std::vector<hca_name> read(const std::vector<std::string>& descriptions) {
    return read_hca_names({descriptions.begin(), descriptions.end()});
}
std::vector<hca_name> read(std::vector<std::string>&&) = delete;  // names are views

/// What `hosts` hosts of four HCAs write, with N for the host's number and R for the rail's.
std::vector<std::string> fabric_of(int hosts, fmt::string_view pattern) {
    std::vector<std::string> out;
    for (int n = 1; n <= hosts; ++n)
        for (int r = 0; r < 4; ++r)
            out.push_back(fmt::format(fmt::runtime(pattern), fmt::arg("n", n), fmt::arg("r", r),
                                      fmt::arg("pci", 4660 + 257 * r)));
    return out;
}

}  // namespace

TEST_CASE("one word names a device by its place in a naming", "[topo]") {
    struct row {
        const char *word, *naming;
        std::uint64_t number;
    };
    const auto r =
        GENERATE(row{"mlx5_7", "mlx5_", 7}, row{"HCA-1", "mlx5_", 0}, row{"mlx4_0", "mlx4_", 0},
                 row{"mlx5_ib3", "mlx5_ib", 3}, row{"mlx5_bond_12", "mlx5_bond_", 12},
                 row{"rdma3", "rdma", 3}, row{"hfi1_0", "hfi1_", 0}, row{"ibp3s0", "slot", 3u << 16},
                 row{"rdmaP2p1s0f1", "slot", 2ull << 32 | 1u << 16 | 1},
                 row{"rocep129s0f0np0", "slot", 129u << 16}, row{"ibs4", "slot", 4u << 8},
                 row{"ibo1", "slot", 1u << 8}, row{"mlx5_00000000000000000000001", "mlx5_", 1});
    const auto got = read_device_name(r.word);
    REQUIRE(got);
    CHECK(got->naming == r.naming);
    CHECK(got->number == r.number);
}

TEST_CASE("a word without a number names no place", "[topo]") {
    for (const char* word : {"", "7", "mlx5_", "ibx0c42a103001a2b3c", "mlx5_99999999999999999999999"})
        CHECK_FALSE(read_device_name(word));
}

TEST_CASE("host and device are told by what most descriptions have", "[topo]") {
    const auto* pattern = GENERATE(
        "n{n:02} mlx5_{r}", "n{n:02} mlx5_ib{r}", "n{n:02} mlx5_bond_{r}", "n{n:02} rdma{r}",
        "n{n:02} rdmaP{pci}p0s2", "n{n:02} fabric{r}", "n{n:02}.a-b.example mlx5_{r}", "n{n:02}-mlx5_{r}",
        "n{n:02}_mlx5_{r}", "n{n:02}:ibp{r}s0", "n{n:02}.rdma{r}", "a-n{n:02}-mlx5_ib{r}", "mlx5_{r} n{n:02}",
        "rdma{r} n{n:02}", "mlx5_{r}-n{n:02}", "mlx5_bond_{r}@r1-n{n:02}.c1-k8s", "n{n:02}|mlx5_ib{r}",
        "n{n:02}=rdmaP{pci}p0s2", "ib{n:02} mlx5_{r}", "rdma{n:02} rdma{r}");
    const auto hosts = GENERATE(2, 8, 40);
    CAPTURE(pattern, hosts);
    const auto descriptions = fabric_of(hosts, pattern);
    const auto names = read(descriptions);
    for (std::size_t i = 0; i < names.size(); ++i) {
        CAPTURE(descriptions[i]);
        CHECK(names[i].kind == trust::named);
        const auto host = names[i - i % 4].host;
        CHECK(names[i].host == host);
        CHECK(host.find(fmt::format("{:02}", i / 4 + 1)) != host.npos);
        CHECK(names[i].device_name == names[i % 4].device_name);
        CHECK(names[i].device != hca_name::no_device);
        CHECK(names[i].naming == names[0].naming);
        if (i % 4 > 0) CHECK(names[i].device > names[i - 1].device);
    }
}

TEST_CASE("devices that nobody knows stand first where a word has more followers than a host has HCAs",
          "[topo]") {
    const auto descriptions = fabric_of(40, "fabric{r} n{n:02}");
    const auto names = read(descriptions);
    for (std::size_t i = 0; i < names.size(); ++i) {
        CHECK(names[i].host == fmt::format("n{:02}", i / 4 + 1));
        CHECK(names[i].device_name == fmt::format("fabric{}", i % 4));
    }
}

TEST_CASE("what a factory, an image and a switch write names no host", "[topo]") {
    auto descriptions =
        fabric_of(8, GENERATE("n{n:02} mlx5_{r}", "n{n:02} rdma{r}", "rdma{r} n{n:02}", "n{n:02}-mlx5_{r}"));
    const auto known = descriptions.size();
    for (int i = 0; i < 5; ++i) descriptions.emplace_back("MT4129 ConnectX7   Mellanox Technologies");
    for (int i = 0; i < 5; ++i) descriptions.emplace_back("MT4123 ConnectX6");
    for (const char* one :
         {"MT4119 ConnectX5 Mellanox Technologies", "Mellanox Technologies Aggregation Node", "",
          "localhost mlx5_0", "(none) mlx5_1", "sm01", "gw-ib"})
        descriptions.emplace_back(one);
    const auto names = read(descriptions);
    for (std::size_t i = 0; i < known; ++i) CHECK(names[i].kind == trust::named);
    for (std::size_t i = known; i < known + 11; ++i) CHECK(names[i].kind == trust::factory);
    CHECK(names[known + 11].kind == trust::aggregation);
    CHECK(names[known + 12].kind == trust::factory);
    CHECK(names[known + 13].kind == trust::generic);
    CHECK(names[known + 14].kind == trust::generic);
    CHECK(names[known + 15].host == "sm01");
    CHECK(names[known + 16].host == "gw-ib");
    CHECK(read_hca_names({}).empty());
}

TEST_CASE("hosts of a fabric may write their descriptions in two ways", "[topo]") {
    auto descriptions = fabric_of(8, "n{n:02}-mlx5_{r}");
    const auto other = GENERATE("m{n:02} mlx5_{r}", "m{n:02} rdma{r}");
    for (auto& d : fabric_of(3, other)) descriptions.push_back(d);
    const auto names = read(descriptions);
    for (std::size_t i = 0; i < names.size(); ++i)
        CHECK(names[i].host == fmt::format("{}{:02}", i < 32 ? 'n' : 'm', i % 32 / 4 + 1));
}

TEST_CASE("rails are in the order of the hosts that renamed all their devices", "[topo]") {
    dump_writer d;
    const std::array leaves{d.add_switch("tor-1"), d.add_switch("tor-2")};
    for (unsigned h = 0; h < 11; ++h)
        for (unsigned r = 0; r < 2; ++r)
            d.link(d.add_hca(fmt::format("n{:02} {}{}", h, h % 2 == 0 && r == 0 ? "mlx5_" : "mlx5_ib", r)), 1,
                   leaves[r], 1 + h);
    const auto f = d.model();
    REQUIRE(f.leaf_groups.size() == 1);
    REQUIRE(f.leaf_groups[0].leaves.size() == 2);
    CHECK(f.switches[f.leaf_groups[0].leaves[0]].name == "tor-1");
}

}  // namespace test_hca_names
