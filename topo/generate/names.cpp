// SPDX-License-Identifier: BSD-3-Clause
//
// What nodes are called: switches by number or by a director's card, and hosts that do not all name their
// HCAs alike.
#include <algorithm>

#include <fmt/format.h>

#include "topo/generate/blueprint.hpp"

namespace banyan::topo::generate {
namespace {

constexpr const char* never_named = "Quantum Mellanox Technologies";

/// Two ASICs on a card, as in a CS8500.
std::string card(std::uint32_t director, char kind, std::uint32_t at) {
    return fmt::format("MF0;dir{}:CS8500/{}{:02}/U{}", director + 1, kind, at / 2 + 1, at % 2 + 1);
}

/// "mlx5_3" as others have it: HCA-4, where it sits on a PCI bus, the same with domain and function (two on a
/// card), numbers that begin at 2, none.
std::string other_device(std::uint32_t style, std::uint32_t rail) {
    switch (style) {
        case 0:
            return fmt::format(" HCA-{}", rail + 1);
        case 1:
            return fmt::format(" ibp{}s0", 3 + rail * 10);
        case 2:
            return fmt::format(" ibP{}p{}s0f{}", rail / 4, 8 + rail / 2 % 2 * 120, rail % 2);
        case 3:
            return fmt::format(" mlx5_{}", rail + 2);
        default:
            return {};
    }
}

}  // namespace

std::uint32_t digits_of(std::uint64_t highest) {
    std::uint32_t digits = 1;
    for (; highest >= 10; highest /= 10) ++digits;
    return std::max(2u, digits);
}

std::string switch_name(const blueprint& b, const node& n, const char* kind, std::uint32_t number,
                        std::uint32_t of, std::uint32_t at, std::uint32_t plane) {
    const auto& o = b.o;
    if (o.directors && o.levels == 2 && (n.what == role::leaf || n.what == role::spine))
        return card(n.spine_group, n.what == role::leaf ? 'L' : 'S', at);
    if (o.directors && n.what == role::spine) return card(at, 'L', n.spine_group);
    if (o.directors && n.what == role::core) return card(at / b.n.core_fan, 'S', at % b.n.core_fan);
    return fmt::format("MF0;{}-{:0{}}:{}/U{}", kind, number, digits_of(of),
                       o.planes > 1 ? "Q3400_RA" : "MQM9790", plane + 1);
}

void forget_switch_name(node& n) { n.name = never_named; }

bool is_named(const node& switch_node) { return switch_node.name != never_named; }

void mix_names(blueprint& b, dice& random) {
    const auto chosen = [&] { return random.below(1000) < 1000 * b.o.mixed_names; };
    for (auto& n : b.nodes)
        // The planes of a box are told by their names alone.
        if (is_switch(n.what) && b.o.planes == 1 && chosen()) forget_switch_name(n);
    for (std::uint32_t h = 0; h < b.hosts.size(); ++h) {
        if (!chosen()) continue;
        // The number of the HCA that leads to storage must stay nobody else's.
        const auto style = b.o.storage_rail ? random.below(3) : random.below(5);
        b.hosts[h].named_otherwise = true;
        for (std::uint32_t r = 0; r < b.o.rails; ++r)
            b.nodes[b.hca(h, r)].name = b.hosts[h].name + other_device(style, r);
    }
}

}  // namespace banyan::topo::generate
