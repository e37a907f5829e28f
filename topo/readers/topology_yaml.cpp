// SPDX-License-Identifier: BSD-3-Clause
//
// topology.yaml(5) of Slurm from 25.05 on; topograph writes it too, some of its releases with keys such as
// clusterDefault.
#include <fmt/format.h>

#include "common/text.hpp"
#include "topo/readers/block_sizes.hpp"
#include "topo/readers/name_tree.hpp"
#include "topo/readers/records.hpp"
#include "topo/readers/yaml.hpp"

namespace banyan::topo {
namespace {

const yaml_value* find(const yaml_value& map, std::string_view key, std::string_view other = {}) {
    const auto* out = map.find(key);
    return out || other.empty() ? out : map.find(other);
}

std::string text_of(const yaml_value& map, std::string_view key) {
    const auto* value = map.find(key);
    return value && value->is == yaml_value::kind::text ? value->text : std::string();
}

bool is_default(const yaml_value& topology) {
    const auto* value = find(topology, "cluster_default", "clusterDefault");
    return value && (value->text == "true" || value->text == "yes" || value->text == "True");
}

/// The one that Slurm uses for partitions that name none.
result<const yaml_value*> choose(const yaml_value& all) {
    std::string names;
    for (const auto& t : all.items) {
        if (is_default(t)) return &t;
        names += (names.empty() ? "" : ", ") + text_of(t, "topology");
    }
    if (all.items.size() == 1) return &all.items[0];
    return fail(errc::invalid_input,
                fmt::format("{} topologies ({}), and none is the cluster's default", all.items.size(),
                            names.substr(0, 200)),
                "give the file with cluster_default: true at the one to read");
}

/// Calls `take(map)` for each item of the list at that key.
template <class Take>
void each_of(const yaml_value& map, std::string_view key, Take take) {
    if (const auto* list = map.find(key); list && list->is == yaml_value::kind::list)
        for (const auto& item : list->items) take(item);
}

result<void> read_tree(const yaml_value& tree, dump& out) {
    name_tree names(out);
    each_of(tree, "switches", [&](const yaml_value& s) {
        names.add(s.line, text_of(s, "switch"), text_of(s, "nodes"), text_of(s, "children"));
    });
    return names.finish();
}

result<void> read_blocks(const yaml_value& block, dump& out) {
    name_tree names(out);
    block_sizes sizes;
    if (const auto* list = find(block, "block_sizes", "blockSizes");
        list && list->is == yaml_value::kind::list)
        for (const auto& size : list->items) sizes.take(out, size.line, size.text);
    each_of(block, "blocks",
            [&](const yaml_value& b) { names.add(b.line, text_of(b, "block"), text_of(b, "nodes"), {}); });
    out.blocks = true;
    names.join_in_order(sizes.spans());
    return names.finish();
}

}  // namespace

bool is_topology_yaml(std::string_view text) {
    return any_early_line(text, [](std::string_view line) {
        line = trim(line);
        return line.starts_with("- topology:") || line.starts_with("- \"topology\":");
    });
}

result<void> read_topology_yaml(std::string_view text, dump& out) {
    BANYAN_TRY(const auto file, read_yaml(text));
    if (file.is != yaml_value::kind::list || file.items.empty())
        return fail(errc::invalid_input, "the file is not a list of topologies",
                    "topology.yaml(5) begins with a line such as: - topology: fabric");
    BANYAN_TRY(const auto* chosen, choose(file));
    if (const auto* tree = chosen->find("tree")) return read_tree(*tree, out);
    if (const auto* block = chosen->find("block")) return read_blocks(*block, out);
    return fail(
        errc::invalid_input,
        fmt::format("topology {} is neither a tree nor blocks", text_of(*chosen, "topology")),
        "a flat topology, a ring or a torus tells no leaf groups; set cluster_default: true at a tree "
        "or block, if the file has one");
}

}  // namespace banyan::topo
