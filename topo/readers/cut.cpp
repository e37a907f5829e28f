// SPDX-License-Identifier: BSD-3-Clause
#include "topo/readers/cut.hpp"

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

namespace banyan::topo {
namespace {

/// The same of both ends' lines but for the sign.
std::uint64_t direction(guid a, std::uint16_t a_port, guid b, std::uint16_t b_port) {
    const auto mix = [](std::uint64_t x) {
        x = (x ^ (x >> 32)) * 0x9e3779b97f4a7c15;
        return x ^ (x >> 29);
    };
    const auto here = mix(a * 257 + a_port), there = mix(b * 257 + b_port);
    const auto both = mix(here ^ there);
    return here < there ? both : here > there ? 0 - both : 0;
}

/// Whether each link stands in the text as often from one end as from the other. Linear, for the many dumps
/// that are whole.
bool all_from_both_ends(const dump& d) {
    std::uint64_t sum = 0;
    for (const auto& n : d.nodes)
        for (const auto& p : d.ports_of(n)) sum += direction(n.id, p.port, p.peer, p.peer_port);
    return sum == 0;
}

}  // namespace

cut_signs look_for_cut(const dump& d) {
    cut_signs out;
    out.lines = d.ports.size();
    if (all_from_both_ends(d)) return out;
    boost::unordered_flat_set<guid> has_record;
    boost::unordered_flat_set<std::uint64_t> listed;
    for (const auto& n : d.nodes) {
        if (n.line == 0) continue;
        has_record.insert(n.id);
        if (!out.last || n.line > out.last->line) out.last = &n;
        for (const auto& p : d.ports_of(n)) listed.insert(direction(n.id, p.port, p.peer, p.peer_port));
    }
    for (const auto& n : d.nodes)
        for (const auto& p : d.ports_of(n)) {
            const auto way = direction(n.id, p.port, p.peer, p.peer_port);
            if (way == 0 || listed.contains(0 - way)) continue;
            ++(!has_record.contains(p.peer) ? out.missing
               : p.peer == out.last->id     ? out.of_last
                                            : out.elsewhere);
        }
    return out;
}

}  // namespace banyan::topo
