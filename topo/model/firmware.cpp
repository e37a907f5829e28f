// SPDX-License-Identifier: BSD-3-Clause
//
// Firmware against that of the same boards: nodes of one kind, chip and PSID.
#include <algorithm>
#include <map>
#include <tuple>

#include <banyan/topo/switch_names.hpp>
#include <fmt/format.h>

#include "topo/model/build.hpp"
#include "topo/model/health.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {
namespace {

struct known_node {
    const node_firmware* firmware;
    node_kind kind;
    std::uint32_t index;
};

template <class Nodes>
std::uint32_t index_of(const Nodes& nodes, guid id) {
    const auto at = std::lower_bound(nodes.begin(), nodes.end(), id,
                                     [](const auto& n, guid wanted) { return n.id < wanted; });
    return at == nodes.end() || at->id != id ? none : static_cast<std::uint32_t>(at - nodes.begin());
}

std::string board_of(const known_node& n) {
    return n.firmware->board.empty() ? fmt::format("chip {:#x}", n.firmware->device)
                                     : fmt::format("board {}", n.firmware->board);
}

}  // namespace

void find_odd_firmware(fabric& f, const std::vector<node_firmware>& all) {
    std::map<std::tuple<node_kind, std::uint32_t, std::string>, std::vector<known_node>> peers;
    // A node that several files tell of is one: the last of them is taken.
    std::map<guid, const node_firmware*> last;
    for (const auto& one : all) last[one.id] = &one;
    for (const auto& [id, one] : last) {
        if (const auto sw = index_of(f.switches, id); sw != none)
            peers[{node_kind::switch_node, one->device, one->board}].push_back(
                {one, node_kind::switch_node, sw});
        else if (const auto h = index_of(f.hcas, id); h != none)
            peers[{node_kind::hca, one->device, one->board}].push_back({one, node_kind::hca, h});
    }
    const switch_names names(f);
    const auto report = [&](const char* kind, std::string object, std::string evidence, double sure,
                            std::vector<std::string> where) {
        f.defects.push_back({kind, {std::move(object)}, std::move(evidence), sure, std::move(where)});
    };
    for (const auto& [key, nodes] : peers) {
        std::vector<std::string> versions;
        for (const auto& n : nodes) versions.push_back(n.firmware->version);
        const auto most = usual(std::move(versions));
        if (most.have == most.of) continue;
        if (most.share() <= 0.5) {
            const auto* what = std::get<0>(key) == node_kind::hca ? "HCAs" : "switches";
            report("odd-firmware", fmt::format("{} {} with {}", nodes.size(), what, board_of(nodes.front())),
                   fmt::format("no version is that of most: {} is on {} of them", most.value, most.have), 1.0,
                   {});
            continue;
        }
        for (const auto& n : nodes)
            if (n.firmware->version != most.value)
                report("odd-firmware",
                       n.kind == node_kind::hca ? f.hcas[n.index].name : names.label(f, n.index),
                       fmt::format("{}, {} of {} with {} have {}", n.firmware->version, most.have, most.of,
                                   board_of(n), most.value),
                       most.share(), {hex(n.firmware->id)});
    }
}

}  // namespace banyan::topo::build
