// SPDX-License-Identifier: BSD-3-Clause
#include <set>

#include <banyan/topo/diff.hpp>
#include <catch2/catch.hpp>

#include "fixtures.hpp"

namespace test_diff {

using namespace banyan::topo;
using namespace banyan::topo::test;

TEST_CASE("the same fabric has no difference", "[topo]") {
    const auto f = model_of("ibnetdiscover.txt");
    CHECK(diff(f, f).empty());
}

TEST_CASE("a host, a spine and a link went", "[topo]") {
    const auto d = diff(model_of("ibnetdiscover.txt"), model_of("ibnetdiscover-after-faults.txt"));
    CHECK(d.new_nodes.empty());
    CHECK(d.new_links.empty());
    CHECK(d.lost_nodes.size() == 9);  // eight HCAs and the spine
    // 8 host links, 32 of the spine, and the one link between switches that are both still there.
    CHECK(d.lost_links.size() == 41);
    std::set<guid> gone;
    for (const auto& n : d.lost_nodes) gone.insert(n.id);
    std::vector<changed_link> alone;
    for (const auto& l : d.lost_links)
        if (!gone.contains(l.a.id) && !gone.contains(l.b.id)) alone.push_back(l);
    REQUIRE(alone.size() == 1);
    const std::set<std::string> ends{alone[0].a.node_name, alone[0].b.node_name};
    CHECK(ends == std::set<std::string>{"MF0;leaf-02:MQM9790/U1", "MF0;spine-01:MQM9790/U1"});
    CHECK(alone[0].a.port > 0);
}

TEST_CASE("what is lost one way is new the other way", "[topo]") {
    const auto d = diff(model_of("ibnetdiscover-after-faults.txt"), model_of("ibnetdiscover.txt"));
    CHECK(d.new_nodes.size() == 9);
    CHECK(d.new_links.size() == 41);
    CHECK(d.lost_links.empty());
}

}  // namespace test_diff
