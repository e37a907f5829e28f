// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <tuple>

#include <banyan/topo/diff.hpp>
#include <banyan/topo/switch_names.hpp>

namespace banyan::topo {
namespace {

using link_key = std::tuple<guid, std::uint16_t, guid, std::uint16_t>;

link_end end_of(const fabric& f, const switch_names& names, const port_ref& p) {
    if (p.kind == node_kind::hca) return {f.hcas[p.index].id, p.port, f.hcas[p.index].name, p.kind};
    return {f.switches[p.index].id, p.port, names.label(f, p.index), p.kind};
}

std::map<link_key, changed_link> links_of(const fabric& f) {
    std::map<link_key, changed_link> out;
    const switch_names names(f);
    for (const auto& l : f.links) {
        changed_link c{end_of(f, names, l.a), end_of(f, names, l.b), l.rate, l.rate};
        const link_key key{c.a.id, c.a.port, c.b.id, c.b.port};
        out.emplace(key, std::move(c));
    }
    return out;
}

std::map<guid, changed_node> nodes_of(const fabric& f) {
    std::map<guid, changed_node> out;
    const switch_names names(f);
    for (std::uint32_t i = 0; i < f.switches.size(); ++i)
        out.emplace(f.switches[i].id,
                    changed_node{f.switches[i].id, names.label(f, i), node_kind::switch_node});
    for (const auto& h : f.hcas) out.emplace(h.id, changed_node{h.id, h.name, node_kind::hca});
    return out;
}

using port_of_node = std::pair<guid, std::uint16_t>;

/// A cable that was put elsewhere keeps one end, mostly the HCA's.
std::vector<moved_link> find_moved(const fabric_diff& d) {
    std::map<port_of_node, std::pair<const link_end*, const link_end*>> now;  // port -> (itself, its peer)
    for (const auto& l : d.new_links) {
        now[{l.a.id, l.a.port}] = {&l.a, &l.b};
        now[{l.b.id, l.b.port}] = {&l.b, &l.a};
    }
    std::vector<moved_link> out;
    for (const auto& l : d.lost_links) {
        auto ends = std::pair(&l.a, &l.b);
        if (l.b.kind == node_kind::hca) std::swap(ends.first, ends.second);
        for (const auto& [kept, before] : {ends, std::pair(ends.second, ends.first)}) {
            const auto at = now.find({kept->id, kept->port});
            // Two switch ports that each lead elsewhere are told once, by the first.
            if (at == now.end()) continue;
            out.push_back({*kept, *before, *at->second.second});
            break;
        }
    }
    return out;
}

}  // namespace

fabric_diff diff(const fabric& before, const fabric& after) {
    fabric_diff out;
    const auto old_links = links_of(before), new_links = links_of(after);
    for (const auto& [key, l] : old_links) {
        const auto now = new_links.find(key);
        if (now == new_links.end()) {
            out.lost_links.push_back(l);
            out.lost_links.back().after = {};
        } else if (!(now->second.before == l.before)) {
            out.changed_rates.push_back(l);
            out.changed_rates.back().after = now->second.before;
        }
    }
    for (const auto& [key, l] : new_links)
        if (!old_links.contains(key)) {
            out.new_links.push_back(l);
            out.new_links.back().before = {};
        }
    out.moved_links = find_moved(out);
    const auto old_nodes = nodes_of(before), new_nodes = nodes_of(after);
    for (const auto& [id, n] : old_nodes)
        if (!new_nodes.contains(id)) out.lost_nodes.push_back(n);
    for (const auto& [id, n] : new_nodes)
        if (!old_nodes.contains(id)) out.new_nodes.push_back(n);
    return out;
}

}  // namespace banyan::topo
