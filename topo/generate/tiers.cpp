// SPDX-License-Identifier: BSD-3-Clause
//
// The cables between switches, and the ports of all. Spines have their leaves below in the order of the
// leaves; the spines at one position of all spine groups share their cores. Each plane is a tree of its own.
#include "topo/generate/blueprint.hpp"

namespace banyan::topo::generate {
namespace {

void join(blueprint& b, std::uint32_t low, std::uint32_t low_port, std::uint32_t high,
          std::uint32_t high_port) {
    b.cables.push_back(
        {low, high, static_cast<std::uint16_t>(low_port), static_cast<std::uint16_t>(high_port), b.n.rate});
}

/// `at`: which of the spine group's leaves, storage leaves last.
void connect_leaf(blueprint& b, std::uint32_t box, std::uint32_t spine_group, std::uint32_t at) {
    const auto& n = b.n;
    for (std::uint32_t p = 0; p < b.o.planes; ++p)
        for (std::uint32_t s = 0; s < n.spines; ++s)
            for (std::uint32_t k = 0; k < n.links; ++k)
                join(b, box + p, n.uplink_first + s * n.links + k, b.spine(spine_group, s, p),
                     at * n.links + k + 1);
}

void connect_leaves(blueprint& b) {
    const auto& n = b.n;
    if (b.o.rail_only) {
        for (std::uint32_t i = 0; i < n.groups * b.o.rails; ++i)
            connect_leaf(b, b.first_leaf + i * b.o.planes, i % b.o.rails, i / b.o.rails);
        return;
    }
    const auto of_spine_group = n.groups_of_spine_group * b.o.rails;
    for (std::uint32_t i = 0; i < n.groups * b.o.rails; ++i)
        connect_leaf(b, b.first_leaf + i * b.o.planes, i / of_spine_group, i % of_spine_group);
    for (std::uint32_t i = 0; i < n.spine_groups * n.storage_leaves; ++i)
        connect_leaf(b, b.first_storage + i * b.o.planes, i / n.storage_leaves,
                     of_spine_group + i % n.storage_leaves);
}

void connect_cores(blueprint& b) {
    const auto& n = b.n;
    const auto first_up = std::max(n.down_ports, b.o.radix / 2) + 1;
    for (std::uint32_t spine_group = 0; spine_group < n.spine_groups; ++spine_group)
        for (std::uint32_t s = 0; s < n.spines; ++s)
            for (std::uint32_t c = 0; c < n.core_fan; ++c)
                for (std::uint32_t k = 0; k < n.core_links; ++k)
                    for (std::uint32_t p = 0; p < b.o.planes; ++p)
                        join(b, b.spine(spine_group, s, p), first_up + c * n.core_links + k,
                             b.first_core + (s * n.core_fan + c) * b.o.planes + p,
                             spine_group * n.core_links + k + 1);
}

/// The links of each pair go over the spines in turn, so that every spine has about as many.
void connect_groups(blueprint& b) {
    const auto& n = b.n;
    std::vector<std::uint32_t> turn(n.spine_groups);
    std::vector<std::uint32_t> used(std::size_t{n.spine_groups} * n.spines,
                                    std::max(n.down_ports, b.o.radix / 2));
    for (std::uint32_t low = 0; low < n.spine_groups; ++low)
        for (std::uint32_t high = low + 1; high < n.spine_groups; ++high)
            for (std::uint32_t i = 0; i < n.global_links; ++i) {
                const auto a = turn[low]++ % n.spines, c = turn[high]++ % n.spines;
                const auto a_port = ++used[low * n.spines + a], c_port = ++used[high * n.spines + c];
                for (std::uint32_t p = 0; p < b.o.planes; ++p)
                    join(b, b.spine(low, a, p), a_port, b.spine(high, c, p), c_port);
            }
}

void connect_ring(blueprint& b) {
    const auto links = b.o.odd.ring_links;
    for (std::uint32_t i = 0; i < b.n.groups; ++i)
        for (std::uint32_t k = 0; k < links; ++k)
            join(b, b.leaf(i, 0), b.n.uplink_first + k, b.leaf((i + 1) % b.n.groups, 0),
                 b.n.uplink_first + links + k);
}

}  // namespace

void connect_switches(blueprint& b) {
    if (b.o.odd.ring) return connect_ring(b);
    connect_leaves(b);
    if (b.o.dragonfly) connect_groups(b);
    connect_cores(b);
}

std::uint16_t take_leaf_port(blueprint& b, std::uint32_t leaf_node) {
    auto& first = b.nodes[leaf_node];
    // Where the lower half is full, what is left is beyond the uplinks.
    const auto uplinks = b.o.odd.ring ? 2 * b.o.odd.ring_links : b.n.spines * b.n.links;
    const auto after = static_cast<std::uint16_t>(b.n.uplink_first + uplinks);
    if (first.next_port > first.last_low && first.next_port < after) first.next_port = after;
    const auto port = first.next_port++;
    for (std::uint32_t p = 0; p < b.o.planes; ++p) {
        auto& plane = b.nodes[leaf_node + p];
        plane.next_port = first.next_port;
        plane.serves = true;
    }
    return port;
}

void finish(blueprint& b) {
    for (const auto& c : b.cables) {
        auto& a = b.nodes[c.a];
        auto& up = b.nodes[c.b];
        if (c.gone) continue;
        a.ports = std::max(a.ports, c.a_port);
        up.ports = std::max(up.ports, c.b_port);
    }
    if (!b.o.sharp) return;
    const auto switches = static_cast<std::uint32_t>(b.nodes.size());
    for (std::uint32_t i = 0; i < switches; ++i) {
        if (!is_switch(b.nodes[i].what) || b.nodes[i].gone) continue;
        node inside;
        inside.id = inside.system = b.nodes[i].id + 8;
        inside.name = "Mellanox Technologies Aggregation Node";
        inside.what = role::aggregation;
        b.cables.push_back({static_cast<std::uint32_t>(b.nodes.size()), i, 1, ++b.nodes[i].ports, b.n.rate});
        b.nodes.push_back(std::move(inside));
    }
}

void assign_lids(blueprint& b) {
    if (!b.o.odd.lids && b.o.odd.lost.lids <= 0) return;
    std::uint16_t next = 0;
    for (auto& n : b.nodes)
        if (n.lid == 0) n.lid = ++next;
}

}  // namespace banyan::topo::generate
