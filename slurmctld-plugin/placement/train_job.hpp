// SPDX-License-Identifier: GPL-2.0-or-later
//
// A training job while slurmctld asks where it may run, and the nodes among which it may choose.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include <banyan/topo/placement.hpp>

#include "slurmctld-plugin/fabric/fabric_cache.hpp"
#include "train/options.hpp"

namespace banyan::slurm {

/// Of one call of job_test, all placements and weighings together: some 50 ms, for which users wait for
/// slurmctld's locks. The first placement may take the most of it. When nothing is left, what else would be
/// asked is left out, or answered by cons_tres.
constexpr std::int64_t most_work_of_job_test = topo::most_work_of_placement * 5 / 4;

/// Good for one call of job_test: what it has found out once it keeps.
struct train_job {
    job_record_t& record;
    const train::options& options;
    const topo::request& request;
    const fabric_cache::view& fabric;
    const ctld_tables& ctld;
    mutable topo::work limit{most_work_of_job_test};

    /// Where a requeued job was before, without the nodes that are no longer known; null for a job that runs
    /// for the first time.
    const topo::placement* last() const;
    /// Host indices, ascending: those of `candidates` that are on the fabric and idle now.
    std::vector<std::uint32_t> free_now(const bitstr_t* candidates) const;
    /// Those that no job holds at `time`, by the time limits of the running jobs.
    std::vector<std::uint32_t> free_at(const bitstr_t* candidates, std::time_t time) const;

    /// A job that holds nodes, and until when.
    struct holder {
        std::time_t end;
        bitstr_t* nodes;
    };
    mutable std::optional<std::vector<holder>> holders{};            ///< of free_at
    mutable std::optional<std::optional<topo::placement>> before{};  ///< of last
};

}  // namespace banyan::slurm
