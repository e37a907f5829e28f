// SPDX-License-Identifier: BSD-3-Clause
//
// Storage switches, service leaves and DPUs beside the groups.
#include <fmt/format.h>

#include "topo/generate/additions.hpp"

namespace banyan::topo::generate {
namespace {

/// How many switches a storage rail has: each serves several leaf groups, so that none looks like the leaf of
/// one.
std::uint32_t storage_switches(const blueprint& b) {
    const auto each = std::max(2u, (b.o.radix - 8) / b.o.group_size);
    return std::max(1u, b.n.groups / each);
}

std::uint32_t storage_switch(const blueprint& b, std::uint32_t host, std::uint32_t switches) {
    return std::min(b.hosts[host].group / (b.n.groups / switches), switches - 1);
}

void add_storage_servers(additions& to, const std::vector<std::uint32_t>& leaves, const speed_rate& rate) {
    const auto kind = to.roll.below(2) == 0 ? "nas" : "lustre-oss";
    for (std::uint32_t i = 0; i < to.b.o.odd.storage.servers; ++i)
        for (std::uint32_t k = 0; k < 2; ++k)
            to.join(to.add_hca(fmt::format("{}{:02} {}", kind, i + 1, device_word(to.b, none, k)),
                               duty::storage_server),
                    leaves[(i * 2 + k) % leaves.size()], rate);
}

void join_storage_leaf(additions& to, std::uint32_t leaf, std::uint32_t at,
                       const std::vector<std::uint32_t>& own_spines) {
    const auto& s = to.b.o.odd.storage;
    const auto rate = rate_or(to.b, s.rate);
    if (s.up == shared_storage::way::few_uplinks) {
        const auto spine = to.b.spine(0, at % to.b.n.spines, 0);
        for (std::uint32_t i = 0; i < s.uplinks; ++i) to.join(leaf, spine, to.b.n.rate);
    }
    for (const auto spine : own_spines)
        for (std::uint32_t i = 0; i < s.uplinks; ++i) to.join(leaf, spine, rate);
}

}  // namespace

void add_shared_storage(additions& to) {
    auto& b = to.b;
    const auto& s = b.o.odd.storage;
    if (s.rails == 0) return;
    const auto rate = rate_or(b, s.rate);
    const bool own_spine = s.up == shared_storage::way::own_spine;
    const auto switches = storage_switches(b);
    std::vector<std::uint32_t> leaves, spines;
    for (std::uint32_t k = 0; k < s.rails; ++k)
        for (std::uint32_t i = 0; i < switches; ++i)
            leaves.push_back(to.add_switch(role::storage_leaf, fmt::format("st-{}-{}", k + 1, i + 1)));
    for (std::uint32_t i = 0; own_spine && i < 2; ++i)
        spines.push_back(to.add_switch(role::spine, fmt::format("st-spine-{}", i + 1)));
    for (std::uint32_t h = 0; h < b.o.hosts; ++h)
        for (std::uint32_t k = 0; k < s.rails && !b.hosts[h].off; ++k) {
            const auto at = s.first ? k : b.o.rails + k;
            const auto hca = to.add_hca(b.hosts[h].name + ' ' + device_word(b, h, at), duty::storage_hca);
            b.nodes[hca].host = h;
            to.join(hca, leaves[k * switches + storage_switch(b, h, switches)], rate);
        }
    add_storage_servers(to, leaves, rate);
    for (std::uint32_t i = 0; i < leaves.size(); ++i) join_storage_leaf(to, leaves[i], i, spines);
}

void add_dpus(additions& to) {
    const auto& o = to.b.o;
    const auto device = o.odd.dpu_device ? o.odd.dpu_device : std::uint16_t{0xa2d6};
    const auto kind = to.roll.below(2) == 0 ? "bf" : "dpu-";
    for (std::uint32_t i = 0; i < o.odd.dpus; ++i) {
        const auto hca =
            to.add_hca(fmt::format("{}{:03} {}", kind, i + 1, device_word(to.b, none, 0)), duty::dpu);
        to.b.nodes[hca].device = device;
        const auto rail = o.odd.dpus_on_all_rails ? i / to.b.n.groups % o.rails : 0;
        to.join_leaf(hca, to.b.leaf(i % to.b.n.groups, rail));
    }
}

void add_oddities(blueprint& b, dice& random) {
    const auto& odd = b.o.odd;
    if (odd.less.groups > 0 || odd.less.older_leaves > 0) lessen_groups(b);
    rename_devices(b);
    if (odd.storage.rails > 0 || odd.services.count > 0 || odd.services.hostless > 0 || odd.dpus > 0) {
        additions to(b, random);
        add_shared_storage(to);
        add_service_leaves(to);
        add_dpus(to);
    }
    if (odd.names.format != naming{}.format) format_names(b);
}

}  // namespace banyan::topo::generate
