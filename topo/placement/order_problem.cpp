// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/order_problem.hpp"

#include <algorithm>
#include <initializer_list>
#include <numeric>

namespace banyan::topo {
namespace {

/// Those that divide `slots`, each once, in their order.
std::vector<std::uint32_t> sizes_that_divide(std::uint32_t slots,
                                             std::initializer_list<std::uint32_t> sizes) {
    std::vector<std::uint32_t> out;
    for (const auto size : sizes)
        if (slots % size == 0 && std::find(out.begin(), out.end(), size) == out.end()) out.push_back(size);
    return out;
}

}  // namespace

order_problem slots_in_order(const request& r, const job_slots& job) {
    order_problem out;
    out.slots = r.nodes;
    out.spares = r.spares;
    out.items = sizes_that_divide(r.nodes, {job.rings().largest(), 1, job.units().largest()});
    out.sequences = {job.sequence_by(dimension::dp, dimension::pp),
                     job.sequence_by(dimension::pp, dimension::dp)};
    // Without a model whole pipelines count for more than anything that a tile saves.
    if (r.model) {
        out.tiles = {1, 2, 4, 8};
        out.job = &job;
    }
    return out;
}

order_problem units_in_order(const job_slots& job) {
    const auto& units = job.units();
    order_problem out;
    out.slots = units.size();
    out.items = sizes_that_divide(out.slots, {job.bundles().largest() / units.largest(), 1});
    // As they are numbered, bundle by bundle; and ring by ring.
    std::vector<std::uint32_t> by_number(units.size()), by_ring;
    std::iota(by_number.begin(), by_number.end(), 0u);
    std::vector<bool> known(units.size());
    const auto rings = job.rings();
    for (const auto slot : rings.slots()) {
        const auto unit = units.set_of_slot()[slot];
        if (!known[unit]) by_ring.push_back(unit);
        known[unit] = true;
    }
    out.sequences = {by_number};
    if (by_ring != by_number) out.sequences.push_back(std::move(by_ring));
    return out;
}

}  // namespace banyan::topo
