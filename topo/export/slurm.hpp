// SPDX-License-Identifier: BSD-3-Clause
//
// The fabric as Slurm's own topology plugins take it: topology.conf, or topology.yaml, which Slurm reads
// from 25.05 on. The rails of a leaf group are one "switch" there: Slurm wants every node under exactly one
// leaf, and takes time cubic in the number of switches. Pure functions: the same fabric gives the same text.
//
// Formats: topology.conf(5) and topology.yaml(5) of Slurm. topology/tree: every release;
// topology/block: 23.11 and later.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <banyan/topo/fabric.hpp>

#include "common/result.hpp"
#include "topo/export/slurm_nodes.hpp"

namespace banyan::topo {

enum class slurm_plugin { tree, block };
enum class slurm_blocks { leaf_group, nvlink_domain };

struct slurm_export {
    slurm_plugin plugin = slurm_plugin::tree;
    slurm_blocks blocks = slurm_blocks::leaf_group;
    std::vector<std::uint32_t> block_sizes;  ///< empty: chosen from the blocks
    std::optional<slurm_nodes> nodes;        ///< what Slurm declares; without it every host is a node
};

/// A leaf of the tree, or a block.
struct slurm_leaf {
    std::string name;
    std::vector<std::string> nodes;  ///< never empty; by name, numbers by value
    std::string about;               ///< for people: the leaf switches
    std::uint32_t spine_group = 0;
    std::uint32_t island = 0;
};

struct slurm_switch {
    std::string name;
    std::vector<std::string> children;  ///< names of leaves, or of other switches that stand before this one
};

struct slurm_topology {
    std::vector<slurm_leaf> leaves;      ///< those under one spine group beside each other
    std::vector<slurm_switch> switches;  ///< children first; none for blocks
    std::vector<std::string> roots;      ///< one where the fabric is connected
    std::vector<std::uint32_t> block_sizes;
    std::vector<std::string> notes;  ///< who is left out, and why: one line each, for comments
    std::uint32_t left_out = 0;      ///< hosts and nodes that the notes name
};

/// Every host of the fabric stands in exactly one leaf or in a note. An error where no node is left, where
/// NVLink domains are wanted and the fabric knows none, or where a block size is none that Slurm takes.
result<slurm_topology> slurm_topology_of(const fabric& f, const slurm_export& options);

std::string topology_conf(const fabric& f, const slurm_topology& topology, slurm_plugin plugin);
/// One topology named "fabric", the cluster's default.
std::string topology_yaml(const fabric& f, const slurm_topology& topology, slurm_plugin plugin);

}  // namespace banyan::topo
