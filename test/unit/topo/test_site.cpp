// SPDX-License-Identifier: BSD-3-Clause
#include <banyan/topo/capacity.hpp>
#include <banyan/topo/diff.hpp>
#include <banyan/topo/site.hpp>
#include <banyan/topo/snapshot.hpp>
#include <catch2/catch.hpp>

#include "dump_writer.hpp"

namespace test_site {

using namespace banyan::topo;
using namespace banyan::topo::test;

TEST_CASE("a site file says what no fabric tool knows", "[topo]") {
    rail_fabric d(2, 4, 2, 2);
    build_options options;
    options.site = read_site(R"(
[management]
hosts = "g0n03"
[storage]
devices = ["mlx5_1"]
[[failure_domain]]
kind = "rack"
name = "r1"
hosts = "g0n[00-01]"
[[nvlink_domain]]
name = "nv1"
hosts = "g1n[00-03]"
)",
                             "site.toml")
                       .value();
    const auto f = d.model(options);
    CHECK(find_host(f, "g0n03") == none);
    CHECK(f.hosts.size() == 7);
    CHECK(f.hosts[0].hcas.size() == 1);
    CHECK(f.hosts[0].failure_domains == std::vector<std::string>{"rack=r1"});
    CHECK(f.hosts[find_host(f, "g1n02")].nvlink_domain == "nv1");
    CHECK(std::count_if(f.excluded.begin(), f.excluded.end(), [](auto& e) { return e.kind == "storage"; }) ==
          8);
    const auto again = decode_snapshot(encode_snapshot(f)).value();
    CHECK(again.hosts[0].failure_domains == f.hosts[0].failure_domains);
    CHECK(again.hosts[6].nvlink_domain == "nv1");
}

TEST_CASE("NVLink domains as the agents of the GPUs tell them", "[topo]") {
    rail_fabric d(2, 4, 2, 2);
    build_options options;
    options.site = read_site("[nvlink]\ndomains = \"/somewhere\"\n", "site.toml").value();
    CHECK(options.site.nvlink_domain_file == "/somewhere");
    options.site.nvlink_domain_of =
        read_nvlink_domains("g0n00 u-1.7\ng0n01\tu-1.7\n\ng0n02 - # no NVLink\nelsewhere u-9.1\n").value();
    const auto before = d.model(options);
    CHECK(before.defects.empty());  // a node that this fabric lacks is no fault
    const auto domain = [](const fabric& f, const char* host) {
        return f.hosts[find_host(f, host)].nvlink_domain;
    };
    CHECK(domain(before, "g0n01") == "u-1.7");
    CHECK(domain(before, "g0n02").empty());
    CHECK(domain(before, "g0n03").empty());
    // An agent that is away has told nothing new.
    options.previous = &before;
    options.site.nvlink_domain_of = read_nvlink_domains("g0n00 -\n").value();
    const auto after = d.model(options);
    CHECK(domain(after, "g0n00").empty());
    CHECK(domain(after, "g0n01") == "u-1.7");

    options.site.nvlink_domain_of = read_nvlink_domains("g0n00.site.org u-1.7\n").value();
    CHECK(d.model(options).defects.at(0).kind == "unknown-host");

    const auto refused = [](const char* text) { return read_nvlink_domains(text).error().text(); };
    CHECK(refused("n1 u.1\nn2\n").find("line 2: \"n2\" is not a node") != std::string::npos);
    CHECK(refused("n1 u 1\n").find("line 1") != std::string::npos);
    CHECK(refused("n1 u.1\nn1 u.1\n").find("stands in an earlier line") != std::string::npos);
}

TEST_CASE("a site file that is wrong says where", "[topo]") {
    const auto refused = [](const char* text) { return read_site(text, "site.toml").error().text(); };
    CHECK(refused("[managment]\nhosts = \"a\"\n").find("did you mean management?") != std::string::npos);
    CHECK(refused("[storage]\ndevice = [\"mlx5_1\"]\n").find("site.toml:2: unknown key device") !=
          std::string::npos);
    CHECK(refused("[storage]\ndevices = \"mlx5_1\"\n").find("not a list of strings") != std::string::npos);
    CHECK(refused("[management]\nhosts = \"n[1\"\n").find("site.toml:2") != std::string::npos);
    CHECK(refused("[[wan]]\nsites = [\"n1\"]\n").find("[[wan]] needs") != std::string::npos);
    CHECK(refused("[[wan]]\nsites = [\"n1\", \"n2\"]\ngbps = -1.0\n").find("above 0") != std::string::npos);
    CHECK(refused("[[wan]]\nsites = [\"n[1-2]\", \"n[2-3]\"]\ngbps = 1.0\n").find("n2 at both ends") !=
          std::string::npos);
    CHECK(refused("[storage\n").find("site.toml:1") != std::string::npos);
}

TEST_CASE("sites that only a WAN joins are islands", "[topo]") {
    rail_fabric a(1, 4, 2, 1), b(1, 4, 2, 1);
    auto second = b.text();
    for (const auto& [what, with] : {std::pair("-000000000000", "-b00000000000"), std::pair("g0n", "s1n")})
        for (std::size_t at = 0; (at = second.find(what, at)) != std::string::npos;
             at += std::string(with).size())
            second.replace(at, std::string(what).size(), with);
    build_options options;
    options.site =
        read_site("[[wan]]\nsites = [\"g0n[00-03]\", \"s1n[00-03]\"]\ngbps = 800.0\n", "s").value();
    const auto f = build_fabric(read_ibnetdiscover(a.text() + second).value(), options);
    REQUIRE(f.leaf_groups.size() == 2);
    CHECK(f.leaf_groups[0].island != f.leaf_groups[1].island);
    REQUIRE(f.wan.size() == 1);
    CHECK(f.wan[0].gbps == 800);
}

TEST_CASE("capacity comes from the links", "[topo]") {
    rail_fabric d(2, 8, 4, 2);
    const auto f = d.model();
    CHECK(levels(f) == 2);
    const auto tiers = capacity(f);
    REQUIRE(tiers.size() == 2);
    CHECK(tiers[0].gbps == 2 * 8 * 4 * 400);
    CHECK(tiers[1].gbps == 2 * 4 * 2 * 400);
    CHECK(tiers[1].by_rail == std::vector<double>(4, 2 * 2 * 400));
    CHECK(oversubscription(f) == 4);
}

TEST_CASE("planes of a box are one leaf, not rails", "[topo]") {
    dump_writer d;
    std::vector<std::vector<guid>> boxes;
    for (int box = 0; box < 2; ++box) {
        auto& units = boxes.emplace_back();
        for (int u = 1; u <= 4; ++u)
            units.push_back(
                d.add_switch("MF0;leaf" + std::to_string(box) + ":Q3400_RA/U" + std::to_string(u)));
    }
    for (unsigned h = 0; h < 6; ++h)
        for (unsigned r = 0; r < 2; ++r) {
            const auto hca = d.add_hca("n" + std::to_string(h) + " mlx5_" + std::to_string(r));
            for (unsigned p = 0; p < 4; ++p) d.link(hca, p + 1, boxes[r][p], h + 1, "1xXDR");
        }
    const auto f = d.model();
    CHECK(f.hosts.size() == 6);
    REQUIRE(f.leaf_groups.size() == 1);
    CHECK(f.leaf_groups[0].leaves.size() == 2);
    CHECK(f.defects.empty());
    const auto& hca = f.hcas[f.hosts[0].hcas[0]];
    CHECK(int{hca.planes} == 4);
    CHECK(f.switches[hca.leaf].name == "MF0;leaf0:Q3400_RA/U1");
    CHECK(capacity(f)[0].gbps == 6 * 2 * 4 * 200);
}

TEST_CASE("a cable that was put elsewhere is told as moved", "[topo]") {
    rail_fabric d(2, 4, 2, 2);
    const auto before = d.model();
    d.forget(d.leaves[0][1], 3);
    d.link(d.hcas[0][2][1], 1, d.leaves[1][1], 20);
    const auto changed = diff(before, d.model());
    REQUIRE(changed.moved_links.size() == 1);
    CHECK(changed.moved_links[0].kept.node_name == "g0n02 mlx5_1");
    CHECK(changed.moved_links[0].before.node_name == "leaf-0-1");
    CHECK(changed.moved_links[0].after.node_name == "leaf-1-1");
    CHECK(changed.lost_links.size() == 1);
    CHECK(changed.new_links.size() == 1);
}

}  // namespace test_site
