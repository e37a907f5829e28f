// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/growth/growth_rules.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "slurmctld-plugin/growth/job_nodes.hpp"

namespace banyan::slurm {

bool has_gres(const job_record_t& job) { return job.gres_list_req || job.gres_list_alloc; }

namespace {

/// An untyped one is NO_VAL when allocated, and 0 when asked for or read back after a restart.
bool typed(const gres_job_state_t& state) { return state.type_id != 0 && state.type_id != NO_VAL; }

}  // namespace

bool asks_for(const gres_state_t* request, const gres_state_t* allocated) {
    return request->plugin_id == allocated->plugin_id &&
           (!typed(state_of(request)) || state_of(request).type_id == state_of(allocated).type_id);
}

bool same_kind(const gres_state_t* a, const gres_state_t* b) {
    return a->plugin_id == b->plugin_id && typed(state_of(a)) == typed(state_of(b)) &&
           (!typed(state_of(a)) || state_of(a).type_id == state_of(b).type_id);
}

std::string unclear_gres(const job_record_t& job) {
    const auto allocated = entries<gres_state_t>(job.gres_list_alloc);
    const auto requested = entries<gres_state_t>(job.gres_list_req);
    for (const auto* entry : allocated) {
        const auto& state = state_of(entry);
        if (gres_id_shared(entry->config_flags)) return fmt::format("{} is shared", entry->gres_name);
        if (state.total_gres == NO_CONSUME_VAL64 || !state.gres_cnt_node_alloc ||
            state.node_cnt != job.job_resrcs->nhosts)
            return fmt::format("{} is not counted by node", entry->gres_name);
        const auto asking = std::count_if(requested.begin(), requested.end(),
                                          [&](const auto* request) { return asks_for(request, entry); });
        const auto alike = std::count_if(allocated.begin(), allocated.end(),
                                         [&](const auto* other) { return same_kind(other, entry); });
        if (asking != 1 || alike != 1)
            return fmt::format("{} is asked for in several ways", entry->gres_name);
    }
    for (const auto* request : requested)
        if (std::none_of(allocated.begin(), allocated.end(),
                         [&](const auto* entry) { return asks_for(request, entry); }))
            return fmt::format("{} is asked for, but not allocated", request->gres_name);
    return "";
}

namespace {

std::string unclear_job(const job_record_t& job) {
    const auto* resources = job.job_resrcs;
    if (!resources || !resources->node_bitmap || !resources->core_bitmap || !job.node_bitmap ||
        !job.details || !job.part_ptr ||
        bit_set_count(resources->node_bitmap) != static_cast<int>(resources->nhosts) ||
        !bit_equal(resources->node_bitmap, job.node_bitmap))
        return "its allocation is changing";
    return unclear_gres(job);
}

}  // namespace

bool lives(const step_record_t& step) { return step.state >= JOB_RUNNING; }

/// What rebuild_step_bitmaps() takes for granted of a running step. It gives the array of a step's first GRES
/// to the second, too, and reads as many cores as the job has.
bool rebuild_is_safe(const job_record_t& job, const step_record_t& step) {
    if (!lives(step)) return true;
    if (step.core_bitmap_job && bit_size(step.core_bitmap_job) != bit_size(job.job_resrcs->core_bitmap))
        return false;
    const auto allocated = entries<gres_state_t>(step.gres_list_alloc);
    return allocated.empty() || (allocated.size() == 1 &&
                                 static_cast<gres_step_state_t*>(allocated.front()->gres_data)->node_cnt ==
                                     job.job_resrcs->nhosts);
}

std::string growth_obstacle(const job_record_t& donor, const job_record_t& job) {
    const auto name = [](const job_record_t& one) { return fmt::format("JobId={}", one.job_id); };
    if (!donor.gres_list_req && !job.gres_list_req && !donor.gres_list_alloc && !job.gres_list_alloc)
        return "";
    for (const auto* one : {&donor, &job})
        if (!IS_JOB_RUNNING(one)) return name(*one) + " does not run";
    for (const auto* one : {&donor, &job})
        if (const auto reason = unclear_job(*one); !reason.empty()) return name(*one) + ": " + reason;
    if (bit_overlap_any(donor.node_bitmap, job.node_bitmap)) return "the two jobs share a node";
    if (donor.part_ptr != job.part_ptr || donor.details->whole_node != job.details->whole_node ||
        donor.job_resrcs->node_req != job.job_resrcs->node_req)
        return "the two jobs do not hold their nodes in the same way";
    const auto mine = entries<gres_state_t>(job.gres_list_alloc);
    const auto theirs = entries<gres_state_t>(donor.gres_list_alloc);
    const auto matched = std::count_if(theirs.begin(), theirs.end(), [&](const auto* entry) {
        return std::any_of(mine.begin(), mine.end(),
                           [&](const auto* other) { return same_kind(other, entry); });
    });
    if (mine.size() != theirs.size() || static_cast<std::size_t>(matched) != mine.size())
        return "the two jobs have different kinds of GRES";
    for (const auto* step : entries<step_record_t>(job.step_list))
        if (!rebuild_is_safe(job, *step))
            return fmt::format("step {} of {} has several kinds of GRES, or began before the job lost a node",
                               step->step_id.step_id, name(job));
    return "";
}

}  // namespace banyan::slurm
