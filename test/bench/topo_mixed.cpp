// SPDX-License-Identifier: BSD-3-Clause
//
// Many fabrics of eight shapes, or of six that are no plain tree, small to medium, GUIDs and records
// shuffled. Of each class of object (hosts, HCAs, links, and each kind of switch or group by itself) 0 to 15
// % have a defect; factory names come on top, 0 to 15 % of the HCAs.
#include <algorithm>

#include "test/bench/topo_bench.hpp"
#include "test/bench/topo_chooser.hpp"

namespace banyan::topo::bench {
namespace {

using generate::defect_kind;
constexpr double most = 0.15;

void choose_shape(generate::options& o, std::uint64_t seed, chooser& c) {
    const auto groups = [&](std::uint32_t low, std::uint32_t high) {
        o.hosts = o.group_size * c.from(low, high);
    };
    switch (seed % 8) {
        case 0:
            o.group_size = c.from(8, 16), groups(3, 8);
            break;
        case 1:
            groups(2, 4);
            break;
        case 2:
            o.group_size = o.rack_size = 18, o.rails = 4, groups(3, 8);
            break;
        case 3:
            o.group_size = c.from(16, 32), o.rails = 1, groups(4, 12);
            break;
        case 4:
            o.group_size = 16, o.radix = 32, o.levels = 3, o.spine_group_size = 2, groups(6, 10);
            break;
        case 5:
            o.group_size = c.from(8, 16), o.planes = 4, o.rate = "1xXDR", groups(3, 5);
            break;
        case 6:
            o.group_size = 16, o.rails = 1, o.radix = 32, o.levels = 3, o.spine_group_size = 4,
            groups(12, 20);
            break;
        default:
            o.group_size = c.from(12, 24), o.oversubscription = 2, o.storage_rail = true,
            o.storage_servers = 4;
            groups(3, 6);
    }
    // A last group that is not full.
    if (c.chance(0.3)) o.hosts -= o.group_size / 3;
    o.sharp = c.chance(0.5);
    if (c.chance(0.5)) o.ufm_hosts = c.from(1, 2);
}

void choose_class(generate::options& o, chooser& c, std::initializer_list<defect_kind> kinds, bool only_one) {
    const auto one = c.from(0, static_cast<std::uint32_t>(kinds.size() - 1));
    std::uint32_t at = 0;
    for (const auto kind : kinds) {
        const bool chosen = only_one ? at == one : c.chance(0.6);
        const auto rate = c.share(only_one ? most : most / static_cast<double>(kinds.size()));
        if (chosen && generate::why_impossible(o, kind).empty())
            o.rates[static_cast<std::size_t>(kind)] = rate;
        ++at;
    }
}

/// Shapes that are no plain tree, and names that are not all alike.
void choose_other_shape(generate::options& o, std::uint64_t seed, chooser& c) {
    const auto groups = [&](std::uint32_t low, std::uint32_t high) {
        o.hosts = o.group_size * c.from(low, high);
    };
    switch (seed % 6) {
        case 0:
            o.dragonfly = true, o.rails = c.chance(0.5) ? 1 : 4, o.group_size = c.from(8, 16);
            o.spine_group_size = o.rails == 1 ? c.from(3, 6) : 2;
            groups(3 * o.spine_group_size, 6 * o.spine_group_size);
            if (c.chance(0.5)) o.global_links = c.from(1, 24);
            break;
        case 1:
            o.rail_only = true, o.rails = c.from(3, 8), o.group_size = c.from(8, 16), groups(3, 8);
            break;
        case 2:
            choose_shape(o, c.from(0, 7), c);
            o.routers = c.from(1, 6);
            break;
        case 3:
            o.directors = true, o.rails = c.chance(0.5) ? 1 : 4, o.group_size = c.from(8, 18), groups(4, 10);
            break;
        case 4:
            o.directors = true, o.rails = 1, o.group_size = 16, o.radix = 32, o.levels = 3;
            o.spine_group_size = c.from(2, 4), groups(8, 20);
            break;
        default:
            choose_shape(o, c.from(0, 7), c);
            o.mixed_names = c.share(1);
    }
    if (o.mixed_names == 0 && c.chance(0.4)) o.mixed_names = c.share(0.5);
    if (o.routers == 0 && c.chance(0.2)) o.routers = c.from(1, 3);
    o.sharp = c.chance(0.5);
}

void choose_defects(generate::options& o, chooser& c) {
    const bool only_one = c.chance(0.3);
    choose_class(o, c,
                 {defect_kind::swapped_cables, defect_kind::foreign_leaf, defect_kind::missing_rail,
                  defect_kind::duplicate_name},
                 only_one);
    choose_class(o, c, {defect_kind::no_record, defect_kind::duplicate_guid}, only_one);
    choose_class(o, c, {defect_kind::one_way_link, defect_kind::narrow_link, defect_kind::slow_link},
                 only_one);
    for (const auto kind : {defect_kind::missing_leaf, defect_kind::asymmetric_spine,
                            defect_kind::missing_uplink, defect_kind::factory_name})
        choose_class(o, c, {kind}, c.chance(0.7));
}

void switch_off(generate::options& o, std::uint64_t seed) {
    o.rates.fill(0);
    chooser c(seed + 1'000'000'007);
    if (c.chance(0.8)) o.racks_off = c.share(0.3);
    // Racks that are a part of a leaf group, too.
    if (o.rack_size == 0 && c.chance(0.4)) o.rack_size = std::max(1u, o.group_size / 4);
    if (o.planes == 1 && c.chance(0.4)) o.gateways = c.from(1, 4);
    if (o.planes == 1 && o.levels == 3 && c.chance(0.3)) o.core_hosts = c.from(1, 2);
}

generate::options of_seed(std::uint64_t seed) {
    generate::options o;
    o.seed = seed;
    o.shuffle = true;
    return o;
}

}  // namespace

generate::options mixed_fabric(std::uint64_t seed) {
    chooser c(seed);
    auto o = of_seed(seed);
    choose_shape(o, seed, c);
    choose_defects(o, c);
    return o;
}

generate::options other_fabric(std::uint64_t seed) {
    chooser c(seed + 500'000'003);
    auto o = of_seed(seed);
    choose_other_shape(o, seed, c);
    choose_defects(o, c);
    return o;
}

generate::options clean_fabric(std::uint64_t seed) {
    auto o = mixed_fabric(seed);
    switch_off(o, seed);
    return o;
}

generate::options clean_other_fabric(std::uint64_t seed) {
    auto o = other_fabric(seed);
    o.mixed_names = 0;  // which are defects
    switch_off(o, seed);
    return o;
}

}  // namespace banyan::topo::bench
