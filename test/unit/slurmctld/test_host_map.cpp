// SPDX-License-Identifier: GPL-2.0-or-later
#include <catch2/catch.hpp>

#include "slurmctld-plugin/fabric/host_map.hpp"

using banyan::slurm::host_map;
using hosts = std::vector<std::uint32_t>;

namespace {

constexpr auto no_host = host_map::no_host;
constexpr auto no_node = host_map::no_node;

/// Four hosts, the second unknown to slurm.conf; five nodes, two of them without a host.
host_map mixed() { return {{3, no_node, 0, 4}, 5}; }

}  // namespace

TEST_CASE("a host and its node find each other", "[slurmctld]") {
    const auto map = mixed();
    REQUIRE(map.hosts() == 4);
    REQUIRE(map.nodes() == 5);
    for (std::uint32_t host = 0; host < map.hosts(); ++host)
        if (const int node = map.node_of(host); node != no_node) CHECK(map.host_of(node) == host);
    for (int node = 0; node < static_cast<int>(map.nodes()); ++node)
        if (const auto host = map.host_of(node); host != no_host) CHECK(map.node_of(host) == node);
}

TEST_CASE("what only one side knows has no counterpart", "[slurmctld]") {
    const auto map = mixed();
    CHECK(map.node_of(1) == no_node);
    CHECK(map.host_of(1) == no_host);
    CHECK(map.host_of(2) == no_host);
    CHECK(map.host_of(no_node) == no_host);
}

TEST_CASE("hosts keep the order of the nodes", "[slurmctld]") {
    const auto map = mixed();
    CHECK(map.hosts_of({4, 1, no_node, 0}) == hosts{3, no_host, no_host, 2});
    CHECK(map.known_hosts_of({4, 1, no_node, 0}) == hosts{3, 2});
    CHECK(map.hosts_of({}).empty());
}

TEST_CASE("hosts are chosen by their nodes, in the fabric's order", "[slurmctld]") {
    const auto map = mixed();
    std::vector<int> asked;
    const auto found = map.hosts_where([&](int node) {
        asked.push_back(node);
        return node != 4;
    });
    CHECK(found == hosts{0, 2});
    CHECK(asked == std::vector<int>{3, 0, 4});  // never about a host that is no node
}

TEST_CASE("a map of nothing", "[slurmctld]") {
    CHECK(host_map().hosts() == 0);
    CHECK(host_map({}, 3).host_of(2) == no_host);
    CHECK(host_map({no_node}, 0).hosts_where([](int) { return true; }).empty());
}
