// SPDX-License-Identifier: BSD-3-Clause
//
// Groups of hosts that have less than the others, by design.
#include <map>

#include "topo/generate/additions.hpp"

namespace banyan::topo::generate {
namespace {

/// By index of the speed: the chip whose fastest ports have it, and what boxes with it are called.
struct generation {
    std::uint16_t chip;
    const char* box;
};
std::uint16_t hca_chip(std::uint8_t speed) {
    if (speed <= 4) return 0x1011;
    return speed == 5 ? 0x1017 : speed == 6 ? 0x101b : 0x1021;
}
generation generation_of(std::uint8_t speed) {
    if (speed <= 4) return {0xc738, "SX6036"};
    if (speed == 5) return {0xcf08, "MSB7800"};
    if (speed == 6) return {0xd2f0, "MQM8700"};
    return speed == 7 ? generation{0xd2f2, "MQM9790"} : generation{0xd2f4, "Q3400_RA"};
}

/// No cable was ever laid to the leaves that are not there: each spine's ports below begin at 1, without
/// gaps.
void close_gaps(blueprint& b) {
    std::map<std::uint32_t, std::map<std::uint16_t, cable*>> below;  // upper switch, its port
    for (auto& c : b.cables)
        if (is_switch(b.nodes[c.a].what) && !b.nodes[c.a].gone) below[c.b][c.b_port] = &c;
    for (auto& [upper, cables] : below) {
        std::uint16_t port = 0;
        for (auto& [was, c] : cables) c->b_port = ++port;
    }
}

void take_hcas(blueprint& b, std::uint32_t group) {
    const auto first = group * b.o.group_size;
    for (auto rail = b.o.odd.less.hcas; rail < b.o.rails; ++rail) {
        b.nodes[b.leaf(group, rail)].gone = true;
        for (auto h = first; h < first + b.hosts_of_group(group); ++h) b.nodes[b.hca(h, rail)].gone = true;
    }
}

void slow_hosts(blueprint& b, std::uint32_t group, const speed_rate& rate) {
    const auto first = group * b.o.group_size;
    for (auto h = first; h < first + b.hosts_of_group(group); ++h)
        for (std::uint32_t rail = 0; rail < b.o.rails; ++rail) {
            b.nodes[b.hca(h, rail)].device = hca_chip(rate.speed);
            b.cables[b.hca_cable(b.hca(h, rail))].rate = rate;
        }
}

/// All cables of a switch of the generation before have its speed, at both ends.
void age_leaves(blueprint& b) {
    const auto leaves = b.n.groups * b.o.rails;
    const auto speed = generation_before(b.n.rate).speed;
    for (auto& n : b.nodes)
        if (is_switch(n.what)) {
            n.device = generation_of(b.n.rate.speed).chip;
            n.name = n.name.substr(0, n.name.find(':')) + ':' + generation_of(b.n.rate.speed).box + "/U1";
        }
    for (auto i = leaves - b.o.odd.less.older_leaves; i < leaves; ++i) {
        auto& n = b.nodes[b.first_leaf + i];
        n.device = generation_of(speed).chip;
        n.name = n.name.substr(0, n.name.find(':')) + ':' + generation_of(speed).box + "/U1";
        for (auto& c : b.cables)
            if (c.a == b.first_leaf + i || c.b == b.first_leaf + i) c.rate.speed = speed;
    }
}

}  // namespace

void lessen_groups(blueprint& b) {
    const auto& less = b.o.odd.less;
    for (auto g = b.n.groups - less.groups; g < b.n.groups; ++g) {
        if (less.hcas > 0) take_hcas(b, g);
        if (!less.rate.empty()) slow_hosts(b, g, rate_or(b, less.rate));
    }
    if (less.hcas > 0) close_gaps(b);
    if (less.older_leaves > 0) age_leaves(b);
}

}  // namespace banyan::topo::generate
