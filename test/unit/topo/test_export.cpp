// SPDX-License-Identifier: BSD-3-Clause
//
// What banyan-topo slurm writes: by golden files, and by rules that hold whatever the text.
#include <map>
#include <set>
#include <sstream>

#include <catch2/catch.hpp>

#include "fixtures.hpp"
#include "golden.hpp"
#include "topo/export/slurm.hpp"
#include "topo/export/slurm_names.hpp"

namespace test_export {

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

std::string lines_of(const std::string& text, const std::string& start) {
    std::istringstream in(text);
    std::string out;
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(start)) out += line + "\n";
    return out;
}

/// Reads a topology.conf on its own terms: switch -> its nodes or child switches.
struct read_conf {
    std::map<std::string, std::vector<std::string>> nodes, children;
    explicit read_conf(const std::string& text) {
        std::istringstream in(text);
        for (std::string line; std::getline(in, line);) {
            line = line.substr(0, line.find('#'));
            std::istringstream words(line);
            std::string name, what;
            if (!(words >> name >> what)) continue;
            name = name.substr(name.find('=') + 1);
            const auto list = expand_slurm_hostlist(what.substr(what.find('=') + 1)).value();
            const bool fresh = (what.starts_with("Nodes=") ? nodes : children).emplace(name, list).second;
            CHECK(fresh);
        }
    }
    std::set<std::string> roots() const {
        std::set<std::string> out;
        for (const auto& [name, list] : nodes) out.insert(name);
        for (const auto& [name, list] : children) out.insert(name);
        for (const auto& [name, list] : children)
            for (const auto& child : list) CHECK(out.erase(child) == 1);  // known, and under one switch alone
        return out;
    }
    std::multiset<std::string> all_nodes() const {
        std::multiset<std::string> out;
        for (const auto& [name, list] : nodes) out.insert(list.begin(), list.end());
        return out;
    }
};

std::string tree_of(const fabric& f, const slurm_export& o = {}) {
    const auto topology = slurm_topology_of(f, o);
    INFO((topology ? std::string() : topology.error().text()));
    REQUIRE(topology);
    return topology_conf(f, *topology, slurm_plugin::tree);
}

slurm_export blocks(std::vector<std::uint32_t> sizes = {}) {
    slurm_export o;
    o.plugin = slurm_plugin::block;
    o.block_sizes = std::move(sizes);
    return o;
}

}  // namespace

TEST_CASE("topology.conf: every host under exactly one leaf, one root", "[export]") {
    for (const std::string name :
         {"ibnetdiscover", "ibnetdiscover-3level-sharp", "ibnetdiscover-fattree3", "ibnetdiscover-p",
          "ibnetdiscover-after-faults", "ibnetdiscover-ndr-ibsim0.12"}) {
        INFO(name);
        const auto f = model_of(name + ".txt");
        const auto text = tree_of(f);
        const read_conf conf(text);
        std::multiset<std::string> hosts;
        for (const auto& h : f.hosts)
            if (h.leaf_group != none) hosts.insert(h.name);
        CHECK(conf.all_nodes() == hosts);
        CHECK(conf.roots().size() == 1);
    }
}

TEST_CASE("topology.conf and topology.yaml as they were", "[export]") {
    const auto f = model_of("ibnetdiscover-fattree3.txt");
    check_golden("fattree3-tree.conf", tree_of(f));
    check_golden("fattree3-tree.yaml",
                 topology_yaml(f, slurm_topology_of(f, {}).value(), slurm_plugin::tree));
    const auto topology = slurm_topology_of(f, blocks()).value();
    check_golden("fattree3-block.conf", topology_conf(f, topology, slurm_plugin::block));
    check_golden("fattree3-block.yaml", topology_yaml(f, topology, slurm_plugin::block));
    check_golden("3level-tree.conf", tree_of(model_of("ibnetdiscover-3level-sharp.txt")));
}

TEST_CASE("several fabrics have several roots; spines and cores only where they join something", "[export]") {
    auto f = groups_of({4, 4, 2, 3}, 2);
    CHECK(read_conf(tree_of(f)).roots() == std::set<std::string>{"core1"});
    f.leaf_groups[2].island = 1;
    f.leaf_groups[3].island = 2;
    f.leaf_groups[3].spine_group = 9;
    const auto text = tree_of(f);
    CHECK(read_conf(text).roots() == std::set<std::string>{"g3", "g4", "spine1"});
    CHECK(text.find("3 fabrics that no link joins") != std::string::npos);
    CHECK(read_conf(tree_of(groups_of({4}))).roots() == std::set<std::string>{"g1"});
}

TEST_CASE("nobody is dropped silently", "[export]") {
    auto f = groups_of({3, 2});
    f.hosts[1].leaf_group = none;
    f.hosts[2].name = "n#2\nSwitchName=evil Nodes=n[0-9]";
    const auto topology = slurm_topology_of(f, {}).value();
    CHECK(topology.left_out == 2);
    const auto text = topology_conf(f, topology, slurm_plugin::tree);
    CHECK(text.find("# Left out, since they belong to no leaf group: n001\n") != std::string::npos);
    CHECK(text.find("# Left out, since Slurm takes no such names: n#2?SwitchName=evil") != std::string::npos);
    CHECK(read_conf(text).all_nodes() == std::multiset<std::string>{"n000", "n003", "n004"});
    const auto excluded = tree_of(model_of("ibnetdiscover.txt"));
    CHECK(excluded.find("# No compute hosts (ufm): sm01\n") != std::string::npos);
    for (auto& h : f.hosts) h.leaf_group = none;
    CHECK(!slurm_topology_of(f, {}));
}

TEST_CASE("switch names are Slurm's and differ", "[export]") {
    auto f = groups_of({1, 1, 1});
    f.leaf_groups[0].id = "pod [1], a=b";
    f.leaf_groups[1].id = "spine1";
    f.leaf_groups[2].id = std::string(200, 'x');
    const read_conf conf(tree_of(f));
    CHECK(conf.nodes.size() == 3);
    for (const auto& [name, list] : conf.nodes) CHECK(is_slurm_name(name));
    CHECK(conf.nodes.contains("pod--1---a-b"));
    CHECK(conf.roots() == std::set<std::string>{"spine1-2"});
}

TEST_CASE("only the nodes that Slurm declares; the rest is named", "[export]") {
    const auto f = groups_of({4, 4});
    slurm_export o;
    o.nodes = nodes_of_hostlist("n[002-003],login[1-2]").value();
    const auto topology = slurm_topology_of(f, o).value();
    CHECK(topology.left_out == 8);
    const auto text = topology_conf(f, topology, slurm_plugin::tree);
    CHECK(text.find("# On the fabric, but no node of this Slurm: n[000-001,004-007]\n") != std::string::npos);
    CHECK(text.find("# Nodes of this Slurm that are no compute host of the fabric: login[1-2]\n") !=
          std::string::npos);
    CHECK(lines_of(text, "SwitchName") == "SwitchName=g1 Nodes=n[002-003]  # 0 rails: \n");
    o.nodes = nodes_of_hostlist("other[1-9]").value();
    const auto none_left = slurm_topology_of(f, o);
    REQUIRE(!none_left);
    CHECK(none_left.error().what.find("none of the 9 nodes of this Slurm is on the fabric") !=
          std::string::npos);
}

TEST_CASE("slurm.conf: NodeName lines in all their forms", "[export]") {
    const auto read = nodes_of_slurm_conf(
        "# NodeName=no\nClusterName=x\nNodeName=DEFAULT CPUs=2\nnodename = n[01-02,07] CPUs=2 \\\n  "
        "State=UNKNOWN\n"
        "NodeName=\"r[1-2]c[1-2]\" Reason=\"NodeName=bad\" # r9\nNodeName=a1,a2 NodeHostname=gpu[1-2] "
        "Port=7\n"
        "NodeName=t[1-3] NodeHostname=localhost\nPartitionName=p Nodes=n[50-60]\nNodeName=c1#old "
        "CPUs=2\nInclude more.conf",
        "slurm.conf");
    REQUIRE(read);
    CHECK(read->names == std::vector<std::string>{"a1", "a2", "c1", "n01", "n02", "n07", "r1c1", "r1c2",
                                                  "r2c1", "r2c2", "t1", "t2", "t3"});
    CHECK(read->by_hostname == std::map<std::string, std::string>{{"gpu1", "a1"}, {"gpu2", "a2"}});
    CHECK(read->includes);
    for (const std::string bad :
         {"NodeName=n[1-", "NodeName=n1]", "NodeName=n[3-1]", "NodeName=", "NodeName=a,,b",
          "NodeName=n[0-999]m[0-999]k[0-999]", "", "ClusterName=x\n", "NodeName"}) {
        INFO(bad);
        const auto refused = nodes_of_slurm_conf(bad, "x.conf");
        REQUIRE(!refused);
        CHECK(refused.error().what.find("x.conf") != std::string::npos);
    }
}

TEST_CASE("a host stands under the name that Slurm gives it", "[export]") {
    slurm_export o;
    o.nodes = nodes_of_slurm_conf("NodeName=a[1-4] NodeHostname=n[000-003]\n", "slurm.conf").value();
    CHECK(read_conf(tree_of(groups_of({4}), o)).nodes.at("g1") ==
          std::vector<std::string>{"a1", "a2", "a3", "a4"});
}

TEST_CASE("blocks: sizes that Slurm takes, and NVLink domains", "[export]") {
    auto f = groups_of({4, 4, 4, 4, 4}, 2);
    CHECK(slurm_topology_of(f, blocks())->block_sizes == std::vector<std::uint32_t>{4, 8});
    CHECK(slurm_topology_of(f, blocks({2, 4, 16}))->block_sizes == std::vector<std::uint32_t>{2, 4, 16});
    for (const auto& bad : {std::vector<std::uint32_t>{4, 12}, {4, 6}, {8, 4}, {4, 4}, {0}, {1, 65536}}) {
        const auto refused = slurm_topology_of(f, blocks(bad));
        REQUIRE(!refused);
        CHECK(refused.error().what.find("--block-size") != std::string::npos);
    }
    CHECK(slurm_topology_of(f, blocks({8}))->notes.back().find("23.11 to 24.11 refuse") != std::string::npos);
    CHECK(slurm_topology_of(groups_of({4, 3}), blocks())->block_sizes == std::vector<std::uint32_t>{3});
    CHECK(slurm_topology_of(groups_of({4, 4, 4, 4, 4}, 3), blocks())->block_sizes ==
          std::vector<std::uint32_t>{4});

    auto o = blocks();
    o.blocks = slurm_blocks::nvlink_domain;
    CHECK(!slurm_topology_of(f, o));
    for (std::size_t h = 0; h < 18; ++h) f.hosts[h].nvlink_domain = h < 9 ? "rack-1" : "rack 2";
    const auto topology = slurm_topology_of(f, o).value();
    REQUIRE(topology.leaves.size() == 2);
    CHECK(topology.leaves[0].name == "rack-1");
    CHECK(topology.leaves[1].name == "rack-2");
    CHECK(topology.leaves[1].nodes.size() == 9);
    CHECK(topology.left_out == 2);
}

TEST_CASE("numbers in names sort by value", "[export]") {
    CHECK(sorted_hostlist({"n10", "n2", "n1", "m1", "n9"}) == "m1,n[1-2,9],n10");
}

}  // namespace test_export
