// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/order_problem.hpp"

#include <algorithm>
#include <utility>

namespace banyan::topo {
namespace {

template <class Value>
void add_new(std::vector<Value>& all, Value value) {
    if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(std::move(value));
}

std::vector<std::uint32_t> bins_by_name(const std::vector<bin>& bins) {
    std::vector<std::uint32_t> bin_of, out;  // hosts are numbered by their names
    for (std::uint32_t b = 0; b < bins.size(); ++b)
        for (const auto host : bins[b].hosts) {
            if (host >= bin_of.size()) bin_of.resize(host + 1, none);
            bin_of[host] = b;
        }
    std::copy_if(bin_of.begin(), bin_of.end(), std::back_inserter(out), [](auto b) { return b != none; });
    return out;
}

}  // namespace

order_problem slots_in_order(const request& r, const job_slots& job, const std::vector<bin>& bins) {
    order_problem out{job, r.nodes, r.spares, {}, {}, {1, 2, 4, 8}, 1, bins_by_name(bins)};
    const auto rings = job.rings();
    const auto ring = rings.largest(), unit = job.units().largest(), bundle = job.bundles().largest();
    out.slots_of_stage = std::max(1u, bundle / unit);
    for (const auto size : {ring, 1u, unit, bundle, out.slots_of_stage, ring * out.slots_of_stage})
        if (size < r.nodes && r.nodes % size == 0) add_new(out.items, size);
    if (out.items.empty()) out.items = {1};
    std::vector<std::uint32_t> by_number(r.nodes);
    for (std::uint32_t slot = 0; slot < r.nodes; ++slot) by_number[slot] = slot;
    add_new(out.sequences, std::move(by_number));
    add_new(out.sequences, job.sequence_by(dimension::dp, dimension::pp));
    add_new(out.sequences, job.sequence_by(dimension::pp, dimension::dp));
    add_new(out.sequences, job.units().slots());
    add_new(out.sequences, rings.slots());
    return out;
}

}  // namespace banyan::topo
