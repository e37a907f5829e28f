// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <banyan/topo/capacity.hpp>
#include <banyan/topo/work_order.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <fmt/format.h>

#include "topo/model/names.hpp"

namespace banyan::topo {
namespace {

/// What one day has of each GUID.
class nodes_of_day {
  public:
    explicit nodes_of_day(const fabric& f) : f_(f) {
        for (std::uint32_t i = 0; i < f.switches.size(); ++i) switches_.emplace(f.switches[i].id, i);
        for (std::uint32_t i = 0; i < f.hcas.size(); ++i) hcas_.emplace(f.hcas[i].id, i);
    }
    const switch_node* find_switch(guid id) const {
        const auto at = switches_.find(id);
        return at == switches_.end() ? nullptr : &f_.switches[at->second];
    }
    const hca* find_hca(guid id) const {
        const auto at = hcas_.find(id);
        return at == hcas_.end() ? nullptr : &f_.hcas[at->second];
    }
    std::uint32_t host_of(guid id) const {
        const auto* h = find_hca(id);
        return h ? h->host : none;
    }
    const fabric& of() const { return f_; }
    std::string connector(const link_end& e) const {
        const auto* sw = find_switch(e.id);
        return sw ? connector_of(*sw, e.port) : std::string();
    }

    void tell_host(work_item& item, guid id) const {
        const auto* h = find_hca(id);
        if (!h) return;
        item.device = h->device;
        if (h->host == none) return;
        const auto& host = f_.hosts[h->host];
        item.host = host.name;
        if (host.leaf_group != none) item.leaf_group = f_.leaf_groups[host.leaf_group].id;
        for (const auto& d : host.failure_domains) item.place += (item.place.empty() ? "" : " ") + d;
    }

  private:
    const fabric& f_;
    boost::unordered_flat_map<guid, std::uint32_t> switches_, hcas_;
};

/// Nodes that came or went as one thing: switches, hosts with all of their HCAs, other HCAs.
class whole_nodes {
  public:
    /// `all` is the day that has them, `other` the one that lacks them.
    whole_nodes(const nodes_of_day& all, const nodes_of_day& other, const std::vector<changed_node>& nodes)
        : all_(all) {
        for (const auto& n : nodes) {
            const auto host = n.kind == node_kind::hca ? all.host_of(n.id) : none;
            if (n.kind == node_kind::switch_node) {
                whole_.emplace(n.id, add(n.kind, n.id, n.name));
            } else if (host == none) {
                whole_.emplace(n.id, add(n.kind, n.id, n.name));
            } else if (is_whole(host, other)) {
                const auto [at, fresh] = of_host_.try_emplace(host, 0);
                if (fresh) at->second = add(n.kind, n.id, all.of().hosts[host].name);
                whole_.emplace(n.id, at->second);
            }
        }
    }
    /// Counts the link with the nodes it belongs to; false where it belongs to none.
    bool take(const changed_link& l) {
        bool taken = false;
        for (const auto id : {l.a.id, l.b.id})
            if (const auto at = whole_.find(id); at != whole_.end()) ++items[at->second].links, taken = true;
        return taken;
    }
    std::vector<work_item> items;

  private:
    std::size_t add(node_kind kind, guid id, const std::string& name) {
        work_item item;
        item.at = {id, 0, name, kind};
        item.what = kind == node_kind::switch_node ? work_item::change::lost_switch
                    : all_.host_of(id) == none     ? work_item::change::lost_hca
                                                   : work_item::change::lost_host;
        all_.tell_host(item, id);
        if (item.what == work_item::change::lost_host) item.device.clear();
        items.push_back(std::move(item));
        return items.size() - 1;
    }
    bool is_whole(std::uint32_t host, const nodes_of_day& other) {
        const auto& hcas = all_.of().hosts[host].hcas;
        return std::none_of(hcas.begin(), hcas.end(),
                            [&](auto h) { return other.find_hca(all_.of().hcas[h].id) != nullptr; });
    }

    const nodes_of_day& all_;
    boost::unordered_flat_map<guid, std::size_t> whole_;  ///< GUID -> item
    boost::unordered_flat_map<std::uint32_t, std::size_t> of_host_;
};

/// The end where a technician stands first: a switch, of two the lower by name.
void set_ends(work_item& item, const changed_link& l, const nodes_of_day& day) {
    item.at = l.a, item.to = l.b;
    const bool turn = l.a.kind == node_kind::hca
                          ? l.b.kind != node_kind::hca
                          : l.b.kind != node_kind::hca && l.b.node_name < l.a.node_name;
    if (turn) std::swap(item.at, item.to);
    item.connector = day.connector(item.at);
    item.to_connector = day.connector(item.to);
    day.tell_host(item, item.to.id);
    item.before = l.before;
    item.after = l.after;
}

/// As people call it: HCAs mostly have one port.
std::string place_of(const link_end& e, const std::string& connector) {
    if (e.kind == node_kind::hca) return e.port == 1 ? e.node_name : e.text();
    const auto text = fmt::format("{} port {}", short_switch_name(e.node_name), e.port);
    return connector.empty() ? text : fmt::format("{} (connector {})", text, connector);
}

using port_of = std::pair<guid, std::uint16_t>;

void add_moved(std::vector<work_item>& out, const fabric_diff& d, const nodes_of_day& before,
               const nodes_of_day& after) {
    // Where each cable is now, to see which two were exchanged.
    std::map<port_of, const moved_link*> now;
    for (const auto& m : d.moved_links) now[{m.after.id, m.after.port}] = &m;
    for (const auto& m : d.moved_links) {
        work_item item;
        item.what = work_item::change::moved;
        item.at = m.after, item.to = m.kept, item.was = m.before;
        item.connector = after.connector(item.at);
        item.to_connector = after.connector(item.to);
        item.was_connector = before.connector(item.was);
        after.tell_host(item, m.kept.id);
        const auto other = now.find({m.before.id, m.before.port});
        const bool swapped = other != now.end() && other->second->before.id == m.after.id &&
                             other->second->before.port == m.after.port;
        item.to_do = swapped
                         ? fmt::format("exchange it with the cable of {}", place_of(other->second->kept, ""))
                         : fmt::format("put it back into {}", place_of(item.was, item.was_connector));
        out.push_back(std::move(item));
    }
}

void add_rates(std::vector<work_item>& out, const fabric_diff& d, const nodes_of_day& after) {
    for (const auto& l : d.changed_rates) {
        work_item item;
        set_ends(item, l, after);
        const bool slower = gbps(l.after) < gbps(l.before);
        item.what = slower ? work_item::change::slower : work_item::change::faster;
        item.to_do = slower ? "reseat the cable at both ends, then exchange it" : "nothing, if it was meant";
        out.push_back(std::move(item));
    }
}

}  // namespace

std::string_view name_of(work_item::change c) {
    static constexpr std::string_view names[] = {"lost-switch", "lost-host", "lost-hca", "lost-link",
                                                 "moved",       "slower",    "faster",   "new"};
    return names[static_cast<std::size_t>(c)];
}

std::vector<work_item> work_order(const fabric& before, const fabric& after, const fabric_diff& d) {
    const nodes_of_day old_day(before), new_day(after);
    std::vector<work_item> out;
    std::set<port_of> moved;
    for (const auto& m : d.moved_links) moved.insert({m.kept.id, m.kept.port});
    const auto is_moved = [&](const changed_link& l) {
        return moved.contains({l.a.id, l.a.port}) || moved.contains({l.b.id, l.b.port});
    };
    whole_nodes lost(old_day, new_day, d.lost_nodes), fresh(new_day, old_day, d.new_nodes);
    for (const auto& l : d.lost_links) {
        if (lost.take(l) || is_moved(l)) continue;
        auto& item = out.emplace_back();
        set_ends(item, l, old_day);
        item.to_do = item.host.empty()
                         ? "reseat the cable at both ends, then exchange it"
                         : "reseat the cable at both ends, then exchange it, then look at the HCA";
    }
    add_moved(out, d, old_day, new_day);
    add_rates(out, d, new_day);
    for (const auto& l : d.new_links) {
        if (fresh.take(l) || is_moved(l)) continue;
        auto& item = out.emplace_back();
        set_ends(item, l, new_day);
        item.what = work_item::change::added;
        item.to_do = "nothing, if it was meant";
    }
    for (auto& item : lost.items) {
        item.to_do = item.what == work_item::change::lost_switch
                         ? "look at its power; at its cables if it comes back without them"
                     : item.what == work_item::change::lost_host
                         ? "look at its power; at its cables if it comes back without them"
                         : "look at the host and its cable";
        out.push_back(std::move(item));
    }
    for (auto& item : fresh.items) {
        item.what = work_item::change::added;
        item.to_do = "nothing, if it was meant";
        out.push_back(std::move(item));
    }
    std::stable_sort(out.begin(), out.end(), [](const work_item& x, const work_item& y) {
        if (x.what != y.what) return x.what < y.what;
        if (x.at.node_name != y.at.node_name) return before_by_number(x.at.node_name, y.at.node_name);
        return x.at.port < y.at.port;
    });
    return out;
}

}  // namespace banyan::topo
