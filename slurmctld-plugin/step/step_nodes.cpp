// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/step/step_nodes.hpp"

#include <string>
#include <vector>

#include "slurmctld-plugin/containers.hpp"
#include "slurmctld-plugin/ctld_tables.hpp"
#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/plan/job_plan.hpp"

namespace banyan::slurm {
namespace {

/// Slurm waits for such a node before the first step, which it does itself.
bool must_wait(const node_record_t* node) {
    return IS_NODE_POWERED_DOWN(node) || IS_NODE_FUTURE(node) || IS_NODE_NO_RESPOND(node);
}

/// Those of the plan, then the job's others: the first that are up and the job's, as many as run ranks.
std::vector<int> in_order(const job_record_t& job, const ctld_tables& ctld) {
    std::vector<int> order;
    if (const auto plan = stored_plan(job))
        for (const auto* names : {&plan->nodes, &plan->spares})
            for (const int node : ctld.find_nodes(*names))
                if (node >= 0) order.push_back(node);
    for (const int node : set_bits(job.node_bitmap)) order.push_back(node);
    return order;
}

}  // namespace

bitstr_t* nodes_of_step(job_record_t& job) {
    if (job.next_step_id != 0 || !job.node_bitmap || !is_for_one_step(job)) return nullptr;
    const auto request = request_of(job);
    const auto* ctld = ctld_tables::get();
    if (!request || !*request || (*request)->placement.spares == 0 || !ctld) return nullptr;
    bitmap chosen(bit_alloc(bit_size(job.node_bitmap)));
    std::uint32_t left = (*request)->placement.nodes;
    for (const int node : in_order(job, *ctld)) {
        if (left == 0) break;
        if (!bit_test(job.node_bitmap, node) || bit_test(chosen.get(), node)) continue;
        if (must_wait(ctld->node(node))) return nullptr;
        if (!is_set(ctld->up_nodes(), node)) continue;
        bit_set(chosen.get(), node);
        --left;
    }
    if (left != 0) return nullptr;
    // As Slurm does when it has chosen the nodes of a first step.
    const job_record_t* started = &job;
    if (IS_JOB_CONFIGURING(started)) job_config_fini(&job);
    return chosen.release();
}

}  // namespace banyan::slurm
