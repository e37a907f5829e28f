// SPDX-License-Identifier: BSD-3-Clause
//
// Defects of single links: one end is silent about it, fewer lanes, a lower speed.
#include <fmt/format.h>

#include "topo/generate/plant.hpp"

namespace banyan::topo::generate {
namespace {

/// A link of the fabric proper, with two sound nodes: of compute HCAs, or between switches.
bool can_take(const planter& p, std::uint32_t i) {
    const auto& c = p.b.cables[i];
    const auto usable = [&](std::uint32_t n) {
        const auto what = p.b.nodes[n].what;
        return p.b.nodes[n].gone || p.b.nodes[n].silent || p.b.nodes[n].repeated || what == role::service ||
               what == role::router;
    };
    if (c.gone || p.cable_claimed[i] || usable(c.a) || usable(c.b)) return false;
    // Its name is how a report tells an HCA's link; a claimed HCA may be another's namesake.
    return p.b.nodes[c.a].what != role::compute || !p.node_claimed[c.a];
}

void found(planter& p, defect_kind kind, std::uint32_t i) {
    const auto& c = p.b.cables[i];
    p.cable_claimed[i] = true;
    if (p.b.nodes[c.a].what == role::compute) p.node_claimed[c.a] = true;
    const auto end = [&](std::uint32_t n, std::uint16_t port) {
        return fmt::format("{} port {}", hex(p.b.nodes[n].id), port);
    };
    p.found(kind, {end_text(p.b, c.a, c.a_port), end_text(p.b, c.b, c.b_port)},
            {end(c.a, c.a_port), end(c.b, c.b_port)});
}

bool silence_end(planter& p, std::uint32_t i) {
    if (!can_take(p, i)) return false;
    auto& c = p.b.cables[i];
    (p.roll.below(2) == 0 ? c.a_lists : c.b_lists) = false;
    found(p, defect_kind::one_way_link, i);
    return true;
}

bool narrow(planter& p, std::uint32_t i) {
    if (!can_take(p, i)) return false;
    p.b.cables[i].rate.width = 1;
    found(p, defect_kind::narrow_link, i);
    return true;
}

bool slow_down(planter& p, std::uint32_t i) {
    if (!can_take(p, i)) return false;
    --p.b.cables[i].rate.speed;
    found(p, defect_kind::slow_link, i);
    return true;
}

}  // namespace

void plant_in_links(planter& p) {
    const auto all = p.range(0, p.b.cables.size());
    const auto by = [&p](auto attempt) { return [&p, attempt](std::uint32_t c) { return attempt(p, c); }; };
    p.plant(defect_kind::one_way_link, all, all.size(), by(silence_end));
    p.plant(defect_kind::narrow_link, all, all.size(), by(narrow));
    p.plant(defect_kind::slow_link, all, all.size(), by(slow_down));
}

}  // namespace banyan::topo::generate
