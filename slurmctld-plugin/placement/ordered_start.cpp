// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/placement/ordered_start.hpp"

#include "slurmctld-plugin/placement/requeue.hpp"
#include "slurmctld-plugin/plan/job_plan.hpp"
#include "slurmctld-plugin/plan/plan_builder.hpp"
#include "train/job_size.hpp"

namespace banyan::slurm {
namespace {

/// That of the job's last run, when this is not the first.
std::optional<train::plan> last_run(const job_record_t& job) {
    if (job.restart_cnt == 0) return std::nullopt;
    auto plan = stored_plan(job);
    if (!plan || plan->restart >= job.restart_cnt) return std::nullopt;
    return plan;
}

/// The free nodes of the last run, and the first others, as many as the job has. Null where these do not
/// suffice, or not one of the last run is free.
bitmap nodes_like_last_time(const job_record_t& job, const train::plan& before, const topo::request& request,
                            const ctld_tables& ctld, const bitstr_t* candidates) {
    bitmap out(bit_alloc(bit_size(const_cast<bitstr_t*>(candidates))));
    auto left = train::all_nodes(request);
    const auto take = [&](int node) {
        if (left == 0 || node < 0 || !is_set(candidates, node) || !is_set(ctld.idle_nodes(), node) ||
            is_set(out.get(), node))
            return;
        bit_set(out.get(), node);
        --left;
    };
    for (const int node : ctld.find_nodes(before.nodes)) take(node);
    if (left == train::all_nodes(request)) return {};
    for (const int node : set_bits(candidates)) take(node);
    auto* required = job.details->req_node_bitmap;  // -w
    if (left != 0 || (required && !bit_super_set(required, out.get()))) return {};
    return out;
}

}  // namespace

int start_in_order(job_record_t& job, const job_request& asked, const ctld_tables& ctld,
                   bitstr_t* node_bitmap, test_mode mode, const cons_tres& inner) {
    const auto before = last_run(job);
    if (before && wait_for_nodes(job, ctld, ctld.find_nodes(before->nodes))) return ESLURM_NODES_BUSY;
    const auto chosen = [&](int rc) {
        if (rc == SLURM_SUCCESS && mode == test_mode::run_now)
            save_in_order(job, before ? before : stored_plan(job), ctld, asked, node_bitmap, "no-snapshot");
        return rc;
    };
    if (before && mode == test_mode::run_now) {
        const bitmap all(bit_copy(node_bitmap));
        if (const auto same = nodes_like_last_time(job, *before, asked.placement, ctld, node_bitmap)) {
            bit_copybits(node_bitmap, same.get());
            if (inner.ask(node_bitmap) == SLURM_SUCCESS && bit_equal(node_bitmap, same.get()))
                return chosen(SLURM_SUCCESS);
            bit_copybits(node_bitmap, all.get());
        }
    }
    return chosen(inner.ask(node_bitmap));
}

}  // namespace banyan::slurm
