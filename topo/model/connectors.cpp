// SPDX-License-Identifier: BSD-3-Clause
//
// How the ports of a switch are numbered on its front. The chips and their cages: SwitchX-2, Switch-IB and
// Switch-IB 2 have 36 QSFP cages, Quantum (QM87xx) 40 QSFP56, Quantum-2 (QM97xx) 32 OSFP of two ports each; a
// cable that splits a port doubles the number of ports. Device numbers as in pci.ids. One more port, the
// last, is the aggregation node's inside the chip. Chassis have cards in front of their chips, and
// Quantum-X800 planes: their numbering is not known here.
#include <banyan/topo/work_order.hpp>
#include <fmt/format.h>

namespace banyan::topo {
namespace {

struct front {
    std::uint16_t device;
    std::uint16_t cages, ports;  ///< ports of all cages where none is split
};
constexpr front fronts[] = {
    {0xc738, 36, 36}, {0xcb20, 36, 36}, {0xcf08, 36, 36}, {0xd2f0, 40, 40}, {0xd2f2, 32, 64}};

/// A director's card, of whatever kind: "/L03/", "/S01/".
bool is_card(std::string_view name) {
    for (const std::string_view card : {"/L", "/S"})
        if (const auto at = name.find(card); at != std::string_view::npos && at + 2 < name.size() &&
                                             name[at + 2] >= '0' && name[at + 2] <= '9')
            return true;
    return false;
}

}  // namespace

std::string connector_of(const switch_node& sw, std::uint16_t port) {
    if (port == 0 || is_card(sw.name)) return {};
    for (const auto& f : fronts) {
        if (f.device != sw.device) continue;
        for (const auto ports : {f.ports, static_cast<std::uint16_t>(2 * f.ports)}) {
            // With the aggregation node's port, or without.
            if (sw.ports != ports && sw.ports != ports + 1) continue;
            if (port > ports) return {};
            const auto of_cage = ports / f.cages;
            const auto cage = (port - 1) / of_cage + 1;
            return of_cage == 1 ? fmt::format("{}", cage)
                                : fmt::format("{}/{}", cage, (port - 1) % of_cage + 1);
        }
    }
    return {};
}

}  // namespace banyan::topo
