// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/growth/gres_move.hpp"

#include <utility>

#include "slurmctld-plugin/growth/growth_rules.hpp"

namespace banyan::slurm {
namespace {

/// Takes the array per node, which may be missing in either job, to its new order. Bitmaps move, counts are
/// copied.
template <class T>
void reorder(T*& array, T* of_donor, const std::vector<origin>& nodes) {
    if (!array && !of_donor) return;
    T* const now = array_of<T>(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (T* const before = nodes[i].from_donor ? of_donor : array)
            now[i] = std::exchange(before[nodes[i].offset], T{});
    xfree(array);
    array = now;
}

void free_bitmaps(bitstr_t**& maps, std::uint32_t count) {
    for (std::uint32_t i = 0; maps && i < count; ++i)
        if (maps[i]) bit_free(maps[i]);
    xfree(maps);
}

}  // namespace

void take_over(gres_job_state_t& job, gres_job_state_t& donor, const std::vector<origin>& nodes) {
    reorder(job.gres_bit_alloc, donor.gres_bit_alloc, nodes);
    reorder(job.gres_cnt_node_alloc, donor.gres_cnt_node_alloc, nodes);
    reorder(job.gres_bit_step_alloc, donor.gres_bit_step_alloc, nodes);
    reorder(job.gres_cnt_step_alloc, donor.gres_cnt_step_alloc, nodes);
    job.node_cnt = static_cast<std::uint32_t>(nodes.size());
    job.total_gres += std::exchange(donor.total_gres, 0);
}

void follow_allocation(List requests, List allocation, std::uint32_t nodes) {
    for (auto* request : entries<gres_state_t>(requests)) {
        auto& state = state_of(request);
        free_bitmaps(state.gres_bit_alloc, state.node_cnt);
        free_bitmaps(state.gres_bit_step_alloc, state.node_cnt);
        xfree(state.gres_cnt_node_alloc);
        xfree(state.gres_cnt_step_alloc);
        state.node_cnt = nodes;
        state.gres_bit_alloc = array_of<bitstr_t*>(nodes);
        state.gres_cnt_node_alloc = array_of<std::uint64_t>(nodes);
        for (const auto* entry : entries<gres_state_t>(allocation)) {
            if (!asks_for(request, entry)) continue;
            const auto& from = state_of(entry);
            for (std::uint32_t i = 0; i < nodes; ++i) {
                state.gres_cnt_node_alloc[i] += from.gres_cnt_node_alloc[i];
                bitstr_t* const bits = from.gres_bit_alloc ? from.gres_bit_alloc[i] : nullptr;
                if (!bits) continue;
                if (!state.gres_bit_alloc[i])
                    state.gres_bit_alloc[i] = bit_copy(bits);
                else if (bit_size(state.gres_bit_alloc[i]) == bit_size(bits))
                    bit_or(state.gres_bit_alloc[i], bits);
            }
        }
    }
}

void reorder_step_counts(const job_record_t& job, const std::vector<origin>& nodes) {
    for (auto* step : entries<step_record_t>(job.step_list))
        if (lives(*step))
            for (auto* entry : entries<gres_state_t>(step->gres_list_alloc))
                reorder<std::uint64_t>(static_cast<gres_step_state_t*>(entry->gres_data)->gres_cnt_node_alloc,
                                       nullptr, nodes);
}

}  // namespace banyan::slurm
