// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/shrink/job_gres.hpp"

#include <algorithm>

#include "slurmctld-plugin/containers.hpp"

namespace banyan::slurm {
namespace {

gres_job_state_t& state_of(const gres_state_t* entry) {
    return *static_cast<gres_job_state_t*>(entry->gres_data);
}

gres_step_state_t& step_state_of(const gres_state_t* entry) {
    return *static_cast<gres_step_state_t*>(entry->gres_data);
}

/// Zeroed, to be freed by xfree.
template <class T>
T* array_of(std::size_t size) {
    return static_cast<T*>(slurm_xcalloc(size, sizeof(T), true, false, __FILE__, __LINE__, __func__));
}

void free_bitmaps(bitstr_t**& maps, std::uint32_t count) {
    for (std::uint32_t i = 0; maps && i < count; ++i)
        if (maps[i]) bit_free(maps[i]);
    xfree(maps);
}

/// An untyped one is NO_VAL when allocated, and 0 when asked for or read back after a restart.
bool typed(const gres_job_state_t& state) { return state.type_id != 0 && state.type_id != NO_VAL; }

/// `request` is the entry of the job's request for what `allocated`, an entry of its allocation, holds.
bool asks_for(const gres_state_t* request, const gres_state_t* allocated) {
    return request->plugin_id == allocated->plugin_id &&
           (!typed(state_of(request)) || state_of(request).type_id == state_of(allocated).type_id);
}

/// What the job asks for on each node. Since 23.11 a job of whole nodes also asks without a type for what it
/// asks for with one, in an entry that counts no nodes.
std::vector<gres_state_t*> requests_by_node(list_ptr requests) {
    auto out = entries<gres_state_t>(requests);
    std::erase_if(out, [](const auto* request) { return state_of(request).node_cnt == 0; });
    return out;
}

/// Two entries of allocations are of one GRES and type.
bool same_kind(const gres_state_t* a, const gres_state_t* b) {
    return a->plugin_id == b->plugin_id && typed(state_of(a)) == typed(state_of(b)) &&
           (!typed(state_of(a)) || state_of(a).type_id == state_of(b).type_id);
}

/// The step has what it was started with.
bool lives(const step_record_t& step) { return step.state >= JOB_RUNNING; }

}  // namespace

bool is_counted_by_node(const job_record_t& job) {
    const auto allocated = entries<gres_state_t>(job.gres_list_alloc);
    const auto requested = requests_by_node(job.gres_list_req);
    const auto is_clear = [&](const gres_state_t* entry) {
        const auto& state = state_of(entry);
        return !gres_id_shared(entry->config_flags) && state.total_gres != NO_CONSUME_VAL64 &&
               state.gres_cnt_node_alloc && state.node_cnt == job.job_resrcs->nhosts &&
               std::ranges::count_if(requested, [&](auto* r) { return asks_for(r, entry); }) == 1 &&
               std::ranges::count_if(allocated, [&](auto* other) { return same_kind(other, entry); }) == 1;
    };
    const auto is_allocated = [&](const gres_state_t* request) {
        return std::ranges::any_of(allocated, [&](auto* entry) { return asks_for(request, entry); });
    };
    return std::ranges::all_of(allocated, is_clear) && std::ranges::all_of(requested, is_allocated);
}

void follow_allocation(list_ptr requests, list_ptr allocation, std::size_t nodes) {
    for (auto* request : requests_by_node(requests)) {
        auto& state = state_of(request);
        free_bitmaps(state.gres_bit_alloc, state.node_cnt);
        free_bitmaps(state.gres_bit_step_alloc, state.node_cnt);
        xfree(state.gres_cnt_node_alloc);
        xfree(state.gres_cnt_step_alloc);
        state.node_cnt = static_cast<std::uint32_t>(nodes);
        state.gres_bit_alloc = array_of<bitstr_t*>(nodes);
        state.gres_cnt_node_alloc = array_of<std::uint64_t>(nodes);
        for (const auto* entry : entries<gres_state_t>(allocation)) {
            if (!asks_for(request, entry)) continue;
            const auto& from = state_of(entry);
            for (std::size_t i = 0; i < nodes; ++i) {
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

/// What rebuild_step_bitmaps() takes for granted of a running step. It gives the array of a step's first GRES
/// to the second, too, and reads as many cores as the job has.
bool rebuild_is_safe(const job_record_t& job, const step_record_t& step) {
    if (!lives(step)) return true;
    if (step.core_bitmap_job && bit_size(step.core_bitmap_job) != bit_size(job.job_resrcs->core_bitmap))
        return false;
    const auto allocated = entries<gres_state_t>(step.gres_list_alloc);
    return allocated.empty() ||
           (allocated.size() == 1 && step_state_of(allocated.front()).node_cnt == job.job_resrcs->nhosts);
}

void reorder_step_counts(const job_record_t& job, const std::vector<std::size_t>& kept) {
    for (auto* step : entries<step_record_t>(job.step_list)) {
        if (!lives(*step)) continue;
        for (auto* entry : entries<gres_state_t>(step->gres_list_alloc)) {
            auto& counts = step_state_of(entry).gres_cnt_node_alloc;
            if (!counts) continue;
            auto* const now = array_of<std::uint64_t>(kept.size());
            std::ranges::transform(kept, now, [&](auto before) { return counts[before]; });
            xfree(counts);
            counts = now;
        }
    }
}

}  // namespace banyan::slurm
