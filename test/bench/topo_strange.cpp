// SPDX-License-Identifier: BSD-3-Clause
//
// What the strange fabrics are made of. The kinds take turns, and for each of them four classes of size do,
// so that any thousand seeds have about as many of each.
#include "test/bench/topo_strange.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "test/bench/topo_chooser.hpp"

namespace banyan::topo::bench {
namespace {

constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 4> sizes{
    {{16, 40}, {41, 80}, {81, 130}, {131, 200}}};

void choose_names(generate::options& o, chooser& c) {
    constexpr std::array<const char*, 7> prefixes{"gpu",  "cn",       "node-",   "hgx-a-",
                                                  "r2.c", "x1000c0s", "lrz-i01-"};
    constexpr std::array<const char*, 3> suffixes{".pod2", ".cl.example", "-k8s"};
    o.host_prefix = prefixes[c.from(0, prefixes.size() - 1)];
    if (c.chance(0.2)) o.odd.names.host_suffix = suffixes[c.from(0, suffixes.size() - 1)];
    if (c.chance(0.3)) o.host_digits = c.from(3, 4);
    if (c.chance(0.15)) o.rack_size = std::max(2u, o.group_size / 2);
    constexpr std::array<const char*, 3> managers{"sm01", "ufm-head", "ibmgr1"};
    o.sm_host = managers[c.from(0, managers.size() - 1)];
}

void choose_size(generate::options& o, std::size_t size, chooser& c) {
    constexpr std::array<std::uint32_t, 4> rails{1, 2, 4, 8};
    constexpr std::array<const char*, 3> rates{"4xEDR", "4xHDR", "4xNDR"};
    const auto hosts = c.from(sizes[size].first, sizes[size].second);
    // No more than a leaf of 64 ports has room for.
    const auto groups = std::max(c.from(3, size < 2 ? 5 : 8), hosts / 28 + 1);
    o.group_size = std::max(4u, hosts / groups);
    o.hosts = o.group_size * groups;
    // A last group that is not full.
    if (o.group_size >= 8 && c.chance(0.2)) o.hosts -= o.group_size / 3;
    o.rails = rails[c.from(0, 3)];
    o.rate = rates[c.from(0, 2)];
    o.spines = c.from(4, 6);
    o.oversubscription = c.chance(0.3) ? 2 : 1;
    o.spine_group_size = c.from(2, 3);
}

/// Rails that a kind cannot do with, sizes that would be slow to read, and what else it wants.
void fit(strange_fabric& f, chooser& c) {
    auto& o = f.o;
    // Service hosts have so much less than others that it is no matter of their names alone.
    if (f.kind.starts_with("service")) o.rails = std::max(o.rails, 4u);
    if (f.kind == "storage-leaf") o.rails = std::max(o.rails, 2u);
    if (f.kind == "storage-leaf") o.spines = 0;
    if (f.kind == "hostless-leaf" && c.chance(0.4)) {
        o.directors = true, o.levels = 3;
        o.rails = 1;
    }
    if (f.kind.ends_with("plane") || f.kind == "planes" || f.kind == "dead-chip")
        o.rails = c.chance(0.5) ? 2 : 4;
    if (f.kind == "planes" || f.kind == "renamed" || f.kind == "no-lid") o.sharp = c.chance(0.5);
    if (f.kind == "dead-spine" && c.chance(0.3)) o.levels = 3;
    // No spine has one leaf alone below it.
    if (o.levels == 3 && !o.directors) o.rails = std::max(o.rails, 2u);
    if (f.kind == "dead-core" || f.kind == "service-spine") o.rails = std::clamp(o.rails, 2u, 4u);
}

}  // namespace

result<strange_fabric> strange_of(std::uint64_t seed) {
    const auto& kinds = generate::kinds();
    strange_fabric out;
    out.kind = kinds[seed % kinds.size()];
    auto& o = out.o;
    o.seed = seed;
    o.shuffle = true;
    o.odd.lids = seed % 10 < 7;
    chooser c(seed + 700'000'001);
    choose_size(o, seed / kinds.size() % sizes.size(), c);
    choose_names(o, c);
    fit(out, c);
    BANYAN_CHECK(generate::add_kind(o, out.kind));
    // Sites that rename their devices have all else, too.
    if (o.odd.names.devices == generate::device_form::numbered && c.chance(0.2))
        BANYAN_CHECK(generate::add_kind(o, "renamed"));
    return out;
}

}  // namespace banyan::topo::bench
