// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/placement/node_choice.hpp"

#include "slurmctld-plugin/notice.hpp"
#include "slurmctld-plugin/placement/requeue.hpp"

namespace banyan::slurm {

std::optional<topo::placement> choose_nodes(const train_job& job, const std::vector<std::uint32_t>& free) {
    if (free.size() < job.request.nodes + job.request.spares) return std::nullopt;
    if (auto kept = keep_slots(job, free)) return kept;
    if (!job.limit.any()) {
        log_job_once(job.record.job_id,
                     "the search for its place takes too long on this fabric; placed as by plain cons_tres");
        return std::nullopt;
    }
    auto placed = topo::place(
        job.fabric.fabric, topo::candidates{free, hosts_with_shards(job), job.fabric.risk, job.fabric.kind},
        job.request, job.limit);
    if (placed) return std::move(*placed);
    log_job_once(job.record.job_id, placed.error().text() + "; cons_tres chooses its nodes");
    return std::nullopt;
}

}  // namespace banyan::slurm
