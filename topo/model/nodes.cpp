// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <fmt/format.h>

#include "topo/model/build.hpp"
#include "topo/model/names.hpp"

namespace banyan::topo::build {

void take_nodes(state& s) {
    std::vector<const dump_node*> sorted;
    for (const auto& n : s.source.nodes) sorted.push_back(&n);
    std::stable_sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->id < b->id; });
    const dump_node* last = nullptr;
    for (const auto* n : sorted) {
        if (last && last->id == n->id) {
            s.out.defects.push_back(
                {"duplicate-guid",
                 {fmt::format("0x{:016x}", n->id)},
                 fmt::format("records at lines {} and {}; the first is taken", last->line, n->line),
                 1.0});
            continue;
        }
        last = n;
        if (n->kind == node_kind::router) {
            s.out.excluded.push_back({n->id, n->name, "router"});
        } else if (n->kind == node_kind::switch_node) {
            s.switch_of[n->id] = static_cast<std::uint32_t>(s.out.switches.size());
            s.out.switches.push_back({n->id, n->name, n->lid, n->ports, 0});
        } else {
            s.hca_of[n->id] = static_cast<std::uint32_t>(s.out.hcas.size());
            hca h;
            h.id = n->id;
            h.name = n->name;
            s.out.hcas.push_back(std::move(h));
            s.system_of_hca.push_back(n->system);
            s.device_of_hca.push_back(read_hca_name(n->name).device);
        }
    }
}

}  // namespace banyan::topo::build
