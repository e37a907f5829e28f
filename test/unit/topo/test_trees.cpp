// SPDX-License-Identifier: BSD-3-Clause
//
// Fabrics from Slurm's own topology.conf and topology.yaml: the groups that these tell, and nothing that they
// do not.
#include <map>
#include <set>

#include <banyan/topo/placement.hpp>
#include <banyan/topo/reader.hpp>
#include <banyan/topo/snapshot.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "common/text.hpp"
#include "fixtures.hpp"
#include "topo/export/slurm.hpp"
#include "topo/generate/generate.hpp"

namespace test_trees {

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

fabric model(const std::string& text, const build_options& options = {}) {
    const auto d = read_dump(text);
    INFO((d ? "" : d.error().text()));
    REQUIRE(d);
    return build_fabric(*d, options);
}

/// Hosts of each leaf group.
std::set<std::string> groups(const fabric& f) {
    std::set<std::string> out;
    for (const auto& g : f.leaf_groups) {
        std::vector<std::string> names;
        for (const auto h : g.hosts) names.push_back(f.hosts[h].name);
        out.insert(compress_hostlist(names));
    }
    return out;
}

/// The same, of each spine group or island.
std::set<std::set<std::string>> above(const fabric& f, std::uint32_t leaf_group::*part) {
    std::map<std::uint32_t, std::set<std::string>> out;
    for (const auto& g : f.leaf_groups)
        for (const auto h : g.hosts) out[g.*part].insert(f.hosts[h].name);
    std::set<std::set<std::string>> all;
    for (auto& [at, hosts] : out) all.insert(std::move(hosts));
    return all;
}

tier between(const fabric& f, const std::string& a, const std::string& b) {
    return tier_between(f, find_host(f, a), find_host(f, b));
}

std::string why_not(const std::string& text) {
    const auto d = read_dump(text);
    REQUIRE_FALSE(d);
    return d.error().text();
}

}  // namespace

TEST_CASE("a tree of Slurm: leaf groups, spines, islands", "[topo][trees]") {
    const auto f = model(
        "# by hand\n"
        "SwitchName=edge1 Nodes=gpu[001-004]\n"
        "switchname = \"edge2\" nodes=gpu[005-008] LinkSpeed=100  # keys in any case\n"
        "SwitchName=edge3 Nodes=r[1-2]n[01-02] \\\n"
        "\n"
        "SwitchName=edge4 Nodes=nsd1,sm01,login1\n"
        "SwitchName=lone Nodes=far[1-2]\n"
        "SwitchName=empty Nodes=\n"
        "SwitchName=a Switches=edge[1-2],empty\n"
        "SwitchName=b Switches=edge[3-4]\n"
        "SwitchName=top Switches=a,b\n");
    CHECK(f.defects.empty());
    CHECK(f.excluded.empty());  // Slurm runs jobs on all of them, whatever they are called
    CHECK(groups(f) == std::set<std::string>{"gpu[001-004]", "gpu[005-008]", "r1n[01-02],r2n[01-02]",
                                             "login1,nsd1,sm01", "far[1-2]"});
    CHECK(f.leaf_groups[0].id == "g1");
    CHECK(f.hosts[f.leaf_groups[0].hosts[0]].name == "far1");  // numbered by their hosts
    CHECK(between(f, "gpu001", "gpu004") == tier::leaf);
    CHECK(between(f, "gpu001", "gpu005") == tier::spine);
    CHECK(between(f, "gpu001", "r1n01") == tier::core);
    CHECK(between(f, "gpu001", "far1") == tier::wan);
    CHECK(f.untold ==
          untold_facts{.cables = true, .rails = true, .devices = true, .rates = true, .guids = true});
    CHECK(f.switches.size() == 8);  // `empty` has no node
    CHECK(decode_snapshot(encode_snapshot(f))->untold == f.untold);
}

TEST_CASE("leaves under several spines each, as scripts write them", "[topo][trees]") {
    const auto f = model(
        "SwitchName=l1 Nodes=n[1-2]\nSwitchName=l2 Nodes=n[3-4]\nSwitchName=l3 Nodes=n[5-6]\n"
        "SwitchName=s1 Switches=l[1-3]\nSwitchName=s2 Switches=l[1-3]\n");
    CHECK(f.defects.empty());
    CHECK(above(f, &leaf_group::spine_group).size() == 1);
}

TEST_CASE("a leaf beside spines below one core", "[topo][trees]") {
    const auto f = model(
        "SwitchName=leaf Nodes=n[1-2]\nSwitchName=leaf-b Nodes=n[3-4]\nSwitchName=spine9 Nodes=n[5-6]\n"
        "SwitchName=up Switches=leaf,leaf-b\nSwitchName=core Switches=up,spine9\n");
    CHECK(groups(f).size() == 3);  // whatever its name, it has nodes
    CHECK(between(f, "n1", "n3") == tier::spine);
    CHECK(between(f, "n1", "n5") == tier::core);
}

TEST_CASE("blocks are leaf groups, and of an aggregate near each other", "[topo][trees]") {
    const std::string text =
        "BlockName=b1 Nodes=n[01-18]\nBlockName=b2 Nodes=n[19-36]\nBlockName=b3 Nodes=n[37-54]\n"
        "BlockName=b4 Nodes=n[55-72]\nBlockName=none\nBlockName=b5 Nodes=n[73-90]\nBlockSizes=16,32\n";
    const auto f = model(text);
    CHECK(f.defects.empty());
    CHECK(groups(f).size() == 5);
    CHECK(between(f, "n01", "n20") == tier::spine);
    CHECK(between(f, "n01", "n37") == tier::core);
    CHECK(between(f, "n01", "n90") == tier::core);
    for (const auto& h : f.hosts) CHECK(h.nvlink_domain.empty());  // nobody said so
    // One size tells nothing about which blocks are near.
    const auto flat = model(text.substr(0, text.find("BlockSizes")) + "BlockSizes=18\n");
    CHECK(between(flat, "n01", "n20") == between(flat, "n01", "n90"));
}

TEST_CASE("the site file says that blocks are NVLink domains", "[topo][trees]") {
    build_options options;
    options.site = read_site("[slurm]\nblocks = \"nvlink-domain\"\n", "site.toml").value();
    const auto f = model("BlockName=rack7 Nodes=n[1-4]\nBlockName=rack8 Nodes=n[5-8]\n", options);
    CHECK(f.hosts[find_host(f, "n2")].nvlink_domain == "rack7");
    CHECK(f.hosts[find_host(f, "n8")].nvlink_domain == "rack8");
    // Of switches it says nothing.
    const auto tree = model("SwitchName=rack7 Nodes=n[1-4]\n", options);
    CHECK(tree.hosts[0].nvlink_domain.empty());
    CHECK_FALSE(read_site("[slurm]\nblocks = \"rack\"\n", "site.toml"));
}

TEST_CASE("topology.yaml: trees and blocks in the forms that are written", "[topo][trees]") {
    const auto tree = model(
        "---\n- topology: other\n  cluster_default: false\n  flat: true\n"
        "- topology: main  # the default\n  cluster_default: true\n  tree:\n    switches:\n"
        "      - switch: \"top\"\n        children: 's[1-2]'\n"
        "      - switch: s1\n        nodes: node[01-02]\n"
        "      - switch: s2\n        nodes: node[03-04]\n");
    CHECK(groups(tree) == std::set<std::string>{"node[01-02]", "node[03-04]"});
    CHECK(between(tree, "node01", "node03") == tier::spine);
    // Lists at the indentation of their key, other key names, sizes in brackets.
    for (const std::string sizes : {"    blockSizes: [2, 4]\n", "    block_sizes:\n    - 2\n    - 4\n"}) {
        const auto blocks = model("- topology: one\n  block:\n" + sizes +
                                  "    blocks:\n    - block: b1\n      nodes: a[1-2]\n"
                                  "    -\n      block: b2\n      nodes: a[3-4]\n"
                                  "    - block: b3\n      nodes: a[5-6]\n");
        CHECK(groups(blocks).size() == 3);
        CHECK(between(blocks, "a1", "a3") == tier::spine);
        CHECK(between(blocks, "a1", "a5") == tier::core);
    }
}

TEST_CASE("a topology.yaml that leaves open what to read is refused", "[topo][trees]") {
    const std::string one = "- topology: a\n  tree:\n    switches:\n    - switch: s\n      nodes: n1\n";
    CHECK(why_not(one + "- topology: b\n  flat: true\n").find("2 topologies (a, b)") != std::string::npos);
    CHECK(why_not("- topology: b\n  cluster_default: true\n  flat: true\n" + one)
              .find("topology b is neither") != std::string::npos);
    CHECK(why_not(one + "  - odd\n").find("line 6") != std::string::npos);
    CHECK(why_not("- topology: a\n  tree: &x\n").find("'&'") != std::string::npos);
    CHECK(why_not("- topology: a\n  tree:\n    switches: {}\n").find("'{'") != std::string::npos);
    CHECK(why_not("- topology: a\n  tree:\n    switches:\n").find("no node") != std::string::npos);
}

TEST_CASE("what a topology.conf has wrong is told with its line, the rest is read", "[topo][trees]") {
    const auto d = read_dump(
        "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-\nSwitchName=a Nodes=n5\nSwitchName=c "
        "Switches=a,x\n"
        "Include more.conf\nSwitchName=d Switches=d Colour=red\n");
    REQUIRE(d);
    std::vector<std::uint32_t> lines;
    for (const auto& c : d->complaints) lines.push_back(c.line);
    std::sort(lines.begin(), lines.end());
    CHECK(lines == std::vector<std::uint32_t>{2, 3, 4, 5, 6});
    CHECK(build_fabric(*d).hosts.size() == 2);
    CHECK(why_not("SwitchName=a Switches=b\nSwitchName=b Switches=a\n").find("no node") != std::string::npos);
    CHECK(why_not("SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\n").find("both") != std::string::npos);
}

TEST_CASE("no name and no number of hosts makes a defect of a tree", "[topo][trees]") {
    std::string text = "SwitchName=one Nodes=ufm1\n";
    for (unsigned i = 0; i < 300; ++i)
        text += fmt::format("SwitchName=sw{0} Nodes=mlx5_{0},gpu-ib{0},n{0}x[001-{1:03}]\n", i, i % 40 + 1);
    text += "SwitchName=root Switches=one,sw[0-299]\n";
    const auto f = model(text);
    CHECK(f.defects.empty());
    CHECK(f.excluded.empty());
    CHECK(f.leaf_groups.size() == 301);
    CHECK(find_host(f, "gpu-ib17") != none);
    CHECK(find_host(f, "mlx5_299") != none);
    CHECK(place(f, all_hosts(f), make("tp=8,dp=16", 16)).has_value());
}

TEST_CASE("hostile trees end in bounded time", "[topo][trees][hostile]") {
    // Rings, a thousand levels, a switch in everything, and more names than a file may have.
    std::string text;
    for (unsigned i = 0; i < 1000; ++i)
        text += fmt::format("SwitchName=s{} Nodes=h{} Switches=s{},s0\n", i, i, (i + 1) % 1000);
    CHECK(model(text).hosts.size() == 1000);
    text.clear();
    for (unsigned i = 0; i < 40; ++i)
        text += fmt::format("SwitchName=w{} Nodes=x[1-60000] Switches=w[0-39]\n", i);
    const auto d = read_dump(text);
    REQUIRE(d);
    CHECK(d->complaints.size() > 10);
    CHECK(build_fabric(*d).hosts.size() == 60000);
    std::string deep = "- topology: a\n";
    for (unsigned i = 1; i < 100; ++i) deep += std::string(2 * i, ' ') + "tree:\n";
    CHECK(why_not(deep).find("too deep") != std::string::npos);
}

TEST_CASE("what banyan-topo slurm writes is read again as the same groups", "[topo][trees]") {
    const auto fabric_of = [](const generate::options& o) {
        return build_fabric(read_dump(generate::generate(o).value().text).value());
    };
    generate::options plain, high, odd, lone;
    high.hosts = 320, high.group_size = 16, high.levels = 3;
    odd.hosts = 90, odd.rails = 4, odd.planes = 4, odd.ufm_hosts = 1, odd.shuffle = true;
    lone.hosts = 8;
    for (const auto& o : {plain, high, odd, lone}) {
        const auto f = fabric_of(o);
        for (const auto plugin : {slurm_plugin::tree, slurm_plugin::block}) {
            slurm_export how;
            how.plugin = plugin;
            const auto topology = slurm_topology_of(f, how).value();
            for (const auto& text :
                 {topology_conf(f, topology, plugin), topology_yaml(f, topology, plugin)}) {
                const auto again = model(text);
                CHECK(again.defects.empty());
                CHECK(groups(again) == groups(f));
                if (plugin == slurm_plugin::tree) {
                    CHECK(above(again, &leaf_group::spine_group) == above(f, &leaf_group::spine_group));
                    CHECK(above(again, &leaf_group::island) == above(f, &leaf_group::island));
                }
            }
        }
    }
}

}  // namespace test_trees
