// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/growth/allocation_move.hpp"

#include <algorithm>

#include "slurmctld-plugin/cons_tres/inherited.hpp"

namespace banyan::slurm {
namespace {

/// What select/cons_tres does to its books for a job that begins and one that ends.
struct cons_tres {
    job_res_add_function* add = inherited<job_res_add_function>("job_res_add_job");
    job_res_rm_function* remove = inherited<job_res_rm_function>("job_res_rm_job");
    void** parts = inherited<void*>("select_part_record");
    void** usage = inherited<void*>("select_node_usage");
    bool* initializing = inherited<bool>("select_state_initializing");

    bool usable() const { return add && remove && parts && usage && initializing && !*initializing; }
};

/// The cores, CPUs and memory of both on the nodes of both.
job_resources_t* merged(const job_resources_t& donor, const job_resources_t& job,
                        const std::vector<origin>& nodes, const ctld_tables& ctld) {
    const auto count = nodes.size();
    job_resources_t* const both = create_job_resources();
    both->cpu_array_reps = array_of<std::uint32_t>(count);
    both->cpu_array_value = array_of<std::uint16_t>(count);
    both->cpus = array_of<std::uint16_t>(count);
    both->cpus_used = array_of<std::uint16_t>(count);
    both->memory_allocated = array_of<std::uint64_t>(count);
    both->memory_used = array_of<std::uint64_t>(count);
    both->nhosts = static_cast<std::uint32_t>(count);
    both->ncpus = donor.ncpus + job.ncpus;
    both->node_req = job.node_req;
    both->node_bitmap = bit_copy(job.node_bitmap);
    bit_or(both->node_bitmap, donor.node_bitmap);
    both->nodes = bitmap2node_name(both->node_bitmap);
    both->whole_node = job.whole_node;
    both->threads_per_core = job.threads_per_core;
    both->cr_type = job.cr_type;
    build_job_resources(both);
    bitoff_t to = 0, in_donor = 0, in_job = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const auto& from = nodes[i].from_donor ? donor : job;
        auto& at = nodes[i].from_donor ? in_donor : in_job;
        const auto offset = nodes[i].offset;
        both->cpus[i] = from.cpus[offset];
        both->memory_allocated[i] = from.memory_allocated[offset];
        if (!nodes[i].from_donor) {
            both->cpus_used[i] = from.cpus_used[offset];
            both->memory_used[i] = from.memory_used[offset];
        }
        const int cores = ctld.node(nodes[i].node)->tot_cores;
        for (int core = 0; core < cores; ++core)
            if (bit_test(from.core_bitmap, at + core)) bit_set(both->core_bitmap, to + core);
        at += cores;
        to += cores;
    }
    build_job_resources_cpu_array(both);
    return both;
}

/// The arrays of the job's resources have as many cores as its nodes.
bool cores_fit(const job_resources_t& resources, const ctld_tables& ctld) {
    bitoff_t cores = 0;
    for (const int node : set_bits(resources.node_bitmap))
        cores += ctld.node(node) ? ctld.node(node)->tot_cores : 0;
    return cores == bit_size(resources.core_bitmap) && resources.cpus && resources.cpus_used &&
           resources.memory_allocated && resources.memory_used;
}

void give_nodes(job_record_t& donor, job_record_t& job, job_resources_t* both,
                const std::vector<origin>& nodes, const ctld_tables& ctld) {
    auto& left = *donor.job_resrcs;
    std::fill_n(left.cpus, left.nhosts, std::uint16_t{0});
    left.nhosts = left.ncpus = 0;
    donor.total_cpus = donor.total_nodes = donor.node_cnt = 0;
    donor.details->min_cpus = donor.details->max_cpus = donor.details->min_nodes = 0;

    free_job_resources(&job.job_resrcs);
    job.job_resrcs = both;
    job.total_cpus = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        job.total_cpus += job.details->whole_node == 1 ? ctld.node(nodes[i].node)->cpus_efctv : both->cpus[i];
    job.cpu_cnt = job.details->min_cpus = job.details->max_cpus = job.total_cpus;
    job.total_nodes = job.node_cnt = both->nhosts;

    bit_or(job.node_bitmap, donor.node_bitmap);
    bit_clear_all(donor.node_bitmap);
    bit_clear_all(left.node_bitmap);
    const auto rename = [](char*& text, const char* now) {
        xfree(text);
        text = xstrdup(now);
    };
    rename(job.nodes, both->nodes);
    rename(donor.nodes, "");
    rename(left.nodes, "");
}

}  // namespace

bool can_move_allocation(const job_record_t& job, const ctld_tables& ctld) {
    return cons_tres().usable() && cores_fit(*job.job_resrcs, ctld);
}

void move_allocation(job_record_t& donor, job_record_t& job, const std::vector<origin>& nodes,
                     const ctld_tables& ctld) {
    const auto hidden = {std::pair{&job.gres_list_alloc, job.gres_list_alloc},
                         std::pair{&job.gres_list_req, job.gres_list_req},
                         std::pair{&donor.gres_list_alloc, donor.gres_list_alloc},
                         std::pair{&donor.gres_list_req, donor.gres_list_req}};
    // Without lists cons_tres leaves the nodes' GRES counts alone.
    for (const auto& [place, list] : hidden) *place = nullptr;
    const cons_tres inner;
    for (auto* one : {&donor, &job})
        inner.remove(*inner.parts, *inner.usage, one, job_res_action_normal, true, nullptr);
    give_nodes(donor, job, merged(*donor.job_resrcs, *job.job_resrcs, nodes, ctld), nodes, ctld);
    inner.add(&job, job_res_action_normal);
    for (const auto& [place, list] : hidden) *place = list;
}

}  // namespace banyan::slurm
