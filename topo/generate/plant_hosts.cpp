// SPDX-License-Identifier: BSD-3-Clause
//
// Defects of hosts and of their HCAs.
#include <algorithm>

#include "topo/generate/plant.hpp"

namespace banyan::topo::generate {
namespace {

constexpr const char* factory = "MT4129 ConnectX7   Mellanox Technologies";

/// The cables of two HCAs trade places at the leaves.
void trade(planter& p, std::uint32_t a, std::uint32_t b) {
    for (std::uint32_t plane = 0; plane < p.b.o.planes; ++plane) {
        auto &x = p.lead(a, plane), &y = p.lead(b, plane);
        std::swap(x.b, y.b);
        std::swap(x.b_port, y.b_port);
    }
    p.found(defect_kind::swapped_cables, {p.b.nodes[a].name, p.b.nodes[b].name});
    for (const auto i : {a, b}) {
        p.node_claimed[i] = true;
        ++p.spoilt[p.b.nodes[i].host];
    }
}

/// Half of them between two HCAs of one host, half between two hosts on one rail.
bool swap_cables(planter& p, std::uint32_t host) {
    if (!p.can_take_host(host) || !p.shows_place(host)) return false;
    const auto a = p.pick_hca(host);
    if (a == none) return false;
    const auto first = p.group_of(host) * p.b.o.group_size;
    // Between two HCAs of one host only their numbers show it.
    const bool within = !p.b.hosts[host].named_otherwise && p.roll.below(2) == 0;
    const auto other = within ? host : first + p.roll.below(p.b.hosts_of_group(p.group_of(host)));
    const auto b = within ? p.pick_hca(host) : p.b.hca(other, p.b.nodes[a].rail);
    if (a == b || b == none || !p.sound(b)) return false;
    if (!within) {
        p.take_host(host);  // counts before the second is asked for
        if (!p.can_take_host(other)) {
            p.host_claimed[host] = false;
            --p.hosts_hit[p.group_of(host)];
            return false;
        }
    }
    p.take_host(other);
    trade(p, a, b);
    return true;
}

bool move_abroad(planter& p, std::uint32_t host) {
    const auto a = p.can_take_host(host) && p.shows_place(host) ? p.pick_hca(host) : none;
    const auto group = p.roll.below(p.b.n.groups);
    if (a == none || group == p.group_of(host) || p.b.hosts_of_group(group) < 4) return false;
    const auto leaf = p.b.leaf(group, p.b.nodes[a].rail);
    if (p.b.hosts[group * p.b.o.group_size].off) return false;
    if (p.b.nodes[leaf].gone || p.b.nodes[leaf].silent) return false;
    const auto port = take_leaf_port(p.b, leaf);
    for (std::uint32_t plane = 0; plane < p.b.o.planes; ++plane) {
        p.lead(a, plane).b = leaf + plane;
        p.lead(a, plane).b_port = port;
    }
    p.found(defect_kind::foreign_leaf, {p.b.nodes[a].name});
    p.node_claimed[a] = true;
    ++p.spoilt[host];
    p.take_host(host);
    return true;
}

bool lose_rail(planter& p, std::uint32_t host) {
    const auto a = p.can_take_host(host) ? p.pick_hca(host) : none;
    if (a == none) return false;
    p.b.nodes[a].gone = true;
    p.node_claimed[a] = true;
    ++p.spoilt[host];
    p.found(defect_kind::missing_rail, {p.b.hosts[host].name});
    p.take_host(host);
    return true;
}

/// One HCA of `host` gets the name of the same HCA of another host.
bool double_name(planter& p, std::uint32_t host) {
    const auto a = p.can_take_host(host) ? p.pick_hca(host) : none;
    const auto other = p.roll.below(p.b.hosts.size());
    if (a == none || other == host || !p.can_take_host(other)) return false;
    // The name of a host that counts otherwise is no other's second.
    if (p.b.hosts[host].named_otherwise || p.b.hosts[other].named_otherwise) return false;
    const auto b = p.b.hca(other, p.b.nodes[a].rail);
    if (!p.sound(b)) return false;
    p.take_host(host);
    if (!p.can_take_host(other)) {
        p.host_claimed[host] = false;
        --p.hosts_hit[p.group_of(host)];
        return false;
    }
    p.take_host(other);
    p.b.nodes[a].name = p.b.nodes[b].name;
    p.node_claimed[a] = p.node_claimed[b] = true;
    ++p.spoilt[host];
    p.found(defect_kind::duplicate_name, {hex(p.b.nodes[a].id), hex(p.b.nodes[b].id)});
    return true;
}

/// The four kinds that claim hosts share the third that may be claimed; some claim two hosts.
double part_of_hosts(const planter& p) {
    double claimed = 0;
    for (const auto& [kind, hosts] : {std::pair(defect_kind::swapped_cables, 1.5),
                                      {defect_kind::foreign_leaf, 1.0},
                                      {defect_kind::missing_rail, 1.0},
                                      {defect_kind::duplicate_name, 2.0}})
        claimed += hosts * p.b.o.rates[static_cast<std::size_t>(kind)];
    return claimed > 0.3 ? 0.3 / claimed : 1;
}

bool lose_record(planter& p, std::uint32_t hca) {
    // Its leaf must list it.
    if (!p.sound(hca) || p.b.nodes[p.lead(hca).b].silent) return false;
    p.b.nodes[hca].silent = p.node_claimed[hca] = true;
    p.found(defect_kind::no_record, {hex(p.b.nodes[hca].id), p.b.nodes[hca].name});
    return true;
}

bool repeat_record(planter& p, std::uint32_t hca) {
    if (!p.sound(hca)) return false;
    p.b.nodes[hca].repeated = p.node_claimed[hca] = true;
    p.found(defect_kind::duplicate_guid, {hex(p.b.nodes[hca].id)});
    return true;
}

bool forget_name(planter& p, std::uint32_t hca) {
    const auto host = p.b.nodes[hca].host;
    if (!p.sound(hca) || p.spoilt[host] >= std::max(1u, (p.b.o.rails - 1) / 2)) return false;
    p.b.nodes[hca].name = factory;
    p.node_claimed[hca] = true;
    ++p.spoilt[host];
    p.found(defect_kind::factory_name, {hex(p.b.nodes[hca].id)});
    return true;
}

}  // namespace

void plant_in_hosts(planter& p) {
    const auto hosts = p.b.hosts.size(), hcas = hosts * p.b.o.rails;
    const auto by = [&p](auto attempt) { return [&p, attempt](std::uint32_t c) { return attempt(p, c); }; };
    const auto part = part_of_hosts(p);
    p.plant(defect_kind::swapped_cables, p.all_hosts(), hosts, by(swap_cables), part);
    p.plant(defect_kind::foreign_leaf, p.all_hosts(), hosts, by(move_abroad), part);
    p.plant(defect_kind::missing_rail, p.all_hosts(), hosts, by(lose_rail), part);
    p.plant(defect_kind::duplicate_name, p.all_hosts(), hosts, by(double_name), part);
    p.plant(defect_kind::no_record, p.all_hcas(), hcas, by(lose_record));
    p.plant(defect_kind::duplicate_guid, p.all_hcas(), hcas, by(repeat_record));
}

void plant_in_names(planter& p) {
    p.plant(defect_kind::factory_name, p.all_hcas(), p.b.hosts.size() * p.b.o.rails,
            [&p](std::uint32_t hca) { return forget_name(p, hca); });
    for (const auto& n : p.b.nodes) {
        if (!is_switch(n.what) || n.gone || is_named(n)) continue;
        p.found(defect_kind::factory_name, {hex(n.id)});
        ++p.facts.asked[static_cast<std::size_t>(defect_kind::factory_name)];
    }
}

}  // namespace banyan::topo::generate
