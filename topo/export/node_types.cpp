// SPDX-License-Identifier: BSD-3-Clause
#include "topo/export/node_types.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "topo/model/names.hpp"
#include "topo/model/switch_graph.hpp"

namespace banyan::topo {
namespace {

unsigned gbps(const link_rate& r) { return unsigned{r.width} * r.lane_gbps10 / 10; }

/// The kernel's device name, if it has one. It ends up in shells and in XML, and a description
/// is free text: anything but a plain word is no name.
std::string device_of(const std::string& name) {
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
               c == '-';
    });
    // Old drivers call every device HCA-1; the kernel never does.
    return plain && !name.starts_with("HCA-") ? name : std::string();
}

struct leaf_port {
    std::uint32_t leaf = none;  ///< the box
    std::uint16_t port = 0;
    unsigned gbps = 0;
};

/// For each HCA its ports that lead to switches, the lowest for each box.
std::vector<std::vector<leaf_port>> leaf_ports(const fabric& f) {
    std::vector<std::vector<leaf_port>> out(f.hcas.size());
    for (const auto& l : f.links) {
        const auto& [hca, sw] = l.a.kind == node_kind::hca ? std::pair(l.a, l.b) : std::pair(l.b, l.a);
        if (hca.kind != node_kind::hca || sw.kind != node_kind::switch_node) continue;
        const auto box = f.switches[sw.index].box == none ? sw.index : f.switches[sw.index].box;
        auto& ports = out[hca.index];
        const auto same =
            std::find_if(ports.begin(), ports.end(), [&](const auto& p) { return p.leaf == box; });
        if (same == ports.end())
            ports.push_back({box, hca.port, gbps(l.rate)});
        else
            same->port = std::min(same->port, hca.port);
    }
    return out;
}

std::vector<std::uint16_t> rails_of_leaves(const fabric& f) {
    std::vector<std::uint16_t> out(f.switches.size());
    for (const auto& g : f.leaf_groups)
        for (std::size_t rail = 0; rail < g.leaves.size(); ++rail)
            out[g.leaves[rail]] = static_cast<std::uint16_t>(rail_at(g, rail));
    return out;
}

/// By rail: the islands of switches that its leaves are on.
std::vector<std::set<std::uint32_t>> islands_of_rails(const fabric& f) {
    const auto island = build::connected_switches(f);
    std::vector<std::set<std::uint32_t>> out;
    for (const auto& g : f.leaf_groups)
        for (std::size_t i = 0; i < g.leaves.size(); ++i) {
            const auto rail = rail_at(g, i);
            if (out.size() <= rail) out.resize(rail + 1);
            out[rail].insert(island[g.leaves[i]]);
        }
    return out;
}

/// Whether no switch joins any leaf of one rail with one of another. A leaf that lost all its cables up does
/// not take its rail apart.
bool are_apart(const std::vector<std::set<std::uint32_t>>& islands, const node_type& type) {
    for (const auto& a : type.devices)
        for (const auto& b : type.devices)
            if (a.rail < b.rail && b.rail < islands.size() && !islands[a.rail].empty() &&
                !islands[b.rail].empty() &&
                std::ranges::none_of(islands[a.rail], [&](auto i) { return islands[b.rail].contains(i); }))
                return true;
    return false;
}

using key = std::vector<std::tuple<std::uint16_t, std::string, std::uint16_t>>;

}  // namespace

std::vector<node_type> node_types(const fabric& f) {
    const auto ports = leaf_ports(f);
    const auto rails = rails_of_leaves(f);
    std::map<key, node_type> types;
    for (std::uint32_t h = 0; h < f.hosts.size(); ++h) {
        std::vector<rail_device> devices;
        for (const auto i : f.hosts[h].hcas)
            for (const auto& p : ports[i])
                devices.push_back({rails[p.leaf], device_of(f.hcas[i].device), p.port, p.gbps});
        std::sort(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
            if (a.rail != b.rail) return a.rail < b.rail;
            if (a.device != b.device) return before_by_number(a.device, b.device);
            return a.port < b.port;
        });
        key k;
        for (const auto& d : devices) k.emplace_back(d.rail, d.device, d.port);
        auto& type = types[k];
        type.hosts.push_back(h);
        if (type.devices.empty()) type.devices = devices;
        for (std::size_t i = 0; i < devices.size(); ++i)
            type.devices[i].gbps = std::max(type.devices[i].gbps, devices[i].gbps);
    }
    const auto islands = islands_of_rails(f);
    std::vector<node_type> out;
    for (auto& [k, type] : types) {
        type.rails_apart = are_apart(islands, type);
        out.push_back(std::move(type));
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const auto& a, const auto& b) { return a.hosts.size() > b.hosts.size(); });
    return out;
}

std::string nccl_ib_hca(const node_type& type) {
    std::string out;
    for (const auto& d : type.devices)
        if (!d.device.empty()) out += fmt::format("{}{}:{}", out.empty() ? "=" : ",", d.device, d.port);
    return out;
}

}  // namespace banyan::topo
