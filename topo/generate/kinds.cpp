// SPDX-License-Identifier: BSD-3-Clause
//
// Kinds of fabrics by name: what each is made of, varied by the seed.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.hpp"
#include "topo/generate/blueprint.hpp"

namespace banyan::topo::generate {
namespace {

std::uint32_t from(dice& roll, std::uint32_t low, std::uint32_t high) {
    return low + roll.below(high - low + 1);
}

/// As older HCAs have it.
std::string lower_rate(const options& o) {
    return to_text(generation_before(parse_rate(o.rate).value_or(speed_rate{})));
}

void add_storage(options& o, dice& roll, shared_storage::way up) {
    auto& s = o.odd.storage;
    // As many HCAs on storage switches as on leaves: servers on the ones tell which is which.
    s.rails = o.rails == 1 ? 1 : from(roll, 1, 2);
    s.up = up;
    s.uplinks = up == shared_storage::way::own_spine ? from(roll, 2, 6) : from(roll, 1, 3);
    s.first = roll.below(3) == 0;
    if (roll.below(3) == 0) s.rate = lower_rate(o);
    if (roll.below(2) == 0) s.servers = from(roll, 2, 6);
    if (o.rails <= s.rails) s.servers = std::max(s.servers, from(roll, 2, 6));
}
void storage_uplinks(options& o, dice& roll) { add_storage(o, roll, shared_storage::way::few_uplinks); }
void storage_spine(options& o, dice& roll) {
    // Where hosts have one HCA on either side, nothing tells which side is for compute.
    o.rails = std::max(o.rails, 2u);
    add_storage(o, roll, shared_storage::way::own_spine);
    if (o.hosts <= 3 * o.group_size) o.odd.storage.rails = 2;  // one leaf needs no spine
}
void storage_apart(options& o, dice& roll) { add_storage(o, roll, shared_storage::way::apart); }

void renamed(options& o, dice& roll) { o.odd.names.devices = static_cast<device_form>(from(roll, 1, 5)); }
void half_renamed(options& o, dice& roll) {
    auto& names = o.odd.names;
    names.devices = roll.below(2) == 0 ? device_form::ib : device_form::rdma;
    names.kept_first = roll.below(2) == 0;
    names.kept_by = from(roll, 2, 3);
}
void name_order(options& o, dice& roll) {
    constexpr std::array<const char*, 5> formats{"%h-%d", "%d %h", "%h/%d", "%h:%d", "%d@%h"};
    o.odd.names.format = formats[roll.below(formats.size())];
    if (roll.below(3) == 0) renamed(o, roll);
}

/// Two spine groups at least, or a core would have nothing to join.
void add_cores(options& o) {
    o.levels = 3;
    o.spine_group_size = std::min(o.spine_group_size, std::max(1u, o.hosts / o.group_size / 2));
    if (o.spines == 0) o.spines = 4;
    if (o.cores == 0) o.cores = 2 * o.spines;
}

void planes(options& o, dice& roll) {
    if (o.planes == 1) o.planes = 4, o.rate = "1xXDR";
    if (roll.below(2) == 0) o.routers = std::max(o.routers, 1u);
}
void lost_plane(options& o, dice& roll) {
    planes(o, roll);
    o.odd.lost.planes = roll.below(3) == 0 ? from(roll, 2, 3) : 1;
}
void dead_chip(options& o, dice& roll) {
    planes(o, roll);
    o.odd.lost.chips = 1;
}

void service_leaf(options& o, dice& roll) {
    auto& s = o.odd.services;
    s.count = from(roll, 1, 2);
    s.hosts = roll.below(3) == 0 ? 0 : from(roll, 2, 6);
    s.name = roll.below(2) == 0 ? "mgmt" : "login";
}
void service_spine(options& o, dice& roll) {
    service_leaf(o, roll);
    add_cores(o);
    o.odd.services.count = 2;
    o.odd.services.up = service_leaves::way::second_cores;
}
void storage_leaf(options& o, dice& roll) {
    auto& s = o.odd.services;
    s.count = 2;
    s.up = service_leaves::way::some_spines;
    s.hosts = from(roll, 6, 12);
    s.hcas = 2;
    s.storage = true;
    s.name = roll.below(2) == 0 ? "scr" : "ost";
    if (roll.below(3) > 0) s.host_rate = lower_rate(o);
    if (o.spines == 0) o.spines = std::max(5u, std::min(20u, o.group_size));
    s.spines = o.spines * 2 / 5;
}
void hostless_leaf(options& o, dice& roll) {
    constexpr std::array<double, 3> shares{1, 0.8, 0.5};
    auto& s = o.odd.services;
    s.hostless = from(roll, 1, 3);
    s.hostless_uplinks = shares[roll.below(shares.size())];
    // An edge switch that nobody named is told by the director's cards above it alone.
    s.unmanaged = o.directors && o.levels == 3 && roll.below(2) == 0;
}

void dead_spine(options& o, dice& roll) {
    if (o.spines == 0) o.spines = 5;
    o.odd.lost.spines = roll.below(3) == 0 ? 2 : 1;
}
void dead_core(options& o, dice&) {
    add_cores(o);
    o.odd.lost.cores = 1;
}

void dpus(options& o, dice& roll) {
    constexpr std::array<std::uint16_t, 3> devices{0xa2d2, 0xa2d6, 0xa2dc};
    o.rails = std::max(o.rails, 2u);
    o.odd.dpus = std::max(1u, o.hosts / from(roll, 1, 4));
    o.odd.dpu_device = devices[roll.below(devices.size())];
    o.odd.dpus_on_all_rails = roll.below(2) == 0;
}
void ring(options& o, dice& roll) {
    o.rails = 1;
    o.group_size = std::max(1u, (o.hosts + 5) / from(roll, 3, 6));
    o.odd.ring = true;
    o.odd.ring_links = from(roll, 1, 3);
}

void fewer_hcas(options& o, dice& roll) {
    o.rails = std::max(o.rails, 4u);
    o.odd.less.groups = 1;
    o.odd.less.hcas = o.rails / 2;
    if (roll.below(2) == 0) o.odd.less.rate = lower_rate(o);
}
void slower_group(options& o, dice&) {
    o.odd.less.groups = 1;
    o.odd.less.rate = lower_rate(o);
}
void older_switch(options& o, dice& roll) { o.odd.less.older_leaves = roll.below(2) == 0 ? 1 : o.rails; }
void no_lid(options& o, dice& roll) { o.odd.lost.lids = 0.05 + 0.05 * roll.below(8); }

struct entry {
    std::string_view name;
    void (*apply)(options&, dice&);
};
constexpr std::array entries{entry{"storage-uplinks", storage_uplinks},
                             entry{"storage-spine", storage_spine},
                             entry{"storage-apart", storage_apart},
                             entry{"renamed", renamed},
                             entry{"half-renamed", half_renamed},
                             entry{"name-order", name_order},
                             entry{"planes", planes},
                             entry{"lost-plane", lost_plane},
                             entry{"dead-chip", dead_chip},
                             entry{"service-leaf", service_leaf},
                             entry{"service-spine", service_spine},
                             entry{"storage-leaf", storage_leaf},
                             entry{"hostless-leaf", hostless_leaf},
                             entry{"dead-spine", dead_spine},
                             entry{"dead-core", dead_core},
                             entry{"dpus", dpus},
                             entry{"ring", ring},
                             entry{"fewer-hcas", fewer_hcas},
                             entry{"slower-group", slower_group},
                             entry{"older-switch", older_switch},
                             entry{"no-lid", no_lid}};

}  // namespace

const std::vector<std::string_view>& kinds() {
    static const std::vector<std::string_view> names = [] {
        std::vector<std::string_view> out;
        for (const auto& e : entries) out.push_back(e.name);
        return out;
    }();
    return names;
}

result<void> add_kind(options& o, std::string_view kind) {
    const auto at =
        std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.name == kind; });
    if (at == entries.end()) {
        const auto close = nearest(kind, {kinds().begin(), kinds().end()});
        return fail(errc::invalid_input, fmt::format("--kind: no kind is called \"{}\"", kind),
                    close.empty() ? fmt::format("there are {}", fmt::join(kinds(), ", "))
                                  : "did you mean " + close + "?");
    }
    dice roll(o.seed * 6007 + 1);
    at->apply(o, roll);
    return {};
}

}  // namespace banyan::topo::generate
