// SPDX-License-Identifier: BSD-3-Clause
//
// A topology as the text of topology.conf and of topology.yaml.
#include <fmt/format.h>

#include "common/text.hpp"
#include "topo/counted.hpp"
#include "topo/export/slurm.hpp"

namespace banyan::topo {
namespace {

const char* name_of(slurm_plugin plugin) { return plugin == slurm_plugin::tree ? "tree" : "block"; }

std::string head(const fabric& f, const slurm_topology& topology, slurm_plugin plugin,
                 const std::string& what) {
    std::size_t nodes = 0;
    for (const auto& leaf : topology.leaves) nodes += leaf.nodes.size();
    auto out = fmt::format(
        "# {}\n# Written by banyan-topo slurm from the fabric dump with CRC-32C 0x{:08x}; write it again "
        "when the "
        "fabric changes.\n# {} in {}, each in one of them.\n",
        what, f.source_crc, counted(nodes, "node"),
        counted(topology.leaves.size(), plugin == slurm_plugin::tree ? "leaf group" : "block"));
    for (const auto& note : topology.notes) out += fmt::format("# {}\n", note);
    return out;
}

std::string joined(const std::vector<std::uint32_t>& numbers) {
    std::string out;
    for (const auto n : numbers) out += fmt::format("{}{}", out.empty() ? "" : ",", n);
    return out;
}

}  // namespace

std::string topology_conf(const fabric& f, const slurm_topology& topology, slurm_plugin plugin) {
    auto out =
        head(f, topology, plugin,
             plugin == slurm_plugin::tree
                 ? "topology.conf for TopologyPlugin=topology/tree: the rails of a leaf group are one switch."
                 : "topology.conf for TopologyPlugin=topology/block, which Slurm has from 23.11 on.");
    for (const auto& leaf : topology.leaves)
        out +=
            fmt::format("{}={} Nodes={}  # {}\n", plugin == slurm_plugin::tree ? "SwitchName" : "BlockName",
                        leaf.name, compress_hostlist(leaf.nodes), leaf.about);
    for (const auto& s : topology.switches)
        out += fmt::format("SwitchName={} Switches={}\n", s.name, compress_hostlist(s.children));
    if (plugin == slurm_plugin::block) out += fmt::format("BlockSizes={}\n", joined(topology.block_sizes));
    return out;
}

std::string topology_yaml(const fabric& f, const slurm_topology& topology, slurm_plugin plugin) {
    auto out = head(
        f, topology, plugin,
        fmt::format(
            "topology.yaml with topology/{}, for Slurm 25.05 and later, which then ignore topology.conf.",
            name_of(plugin)));
    out += fmt::format("---\n- topology: fabric\n  cluster_default: true\n  {}:\n", name_of(plugin));
    // Names stand in quotes: 0012 or no would be a number or a truth value. They hold nothing that needs an
    // escape.
    if (plugin == slurm_plugin::block) {
        out += "    block_sizes:\n";
        for (const auto size : topology.block_sizes) out += fmt::format("      - {}\n", size);
        out += "    blocks:\n";
        for (const auto& leaf : topology.leaves)
            out += fmt::format("      - block: \"{}\"  # {}\n        nodes: \"{}\"\n", leaf.name, leaf.about,
                               compress_hostlist(leaf.nodes));
        return out;
    }
    out += "    switches:\n";
    for (auto s = topology.switches.rbegin(); s != topology.switches.rend(); ++s)
        out += fmt::format("      - switch: \"{}\"\n        children: \"{}\"\n", s->name,
                           compress_hostlist(s->children));
    for (const auto& leaf : topology.leaves)
        out += fmt::format("      - switch: \"{}\"  # {}\n        nodes: \"{}\"\n", leaf.name, leaf.about,
                           compress_hostlist(leaf.nodes));
    return out;
}

}  // namespace banyan::topo
