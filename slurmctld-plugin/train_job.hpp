// SPDX-License-Identifier: GPL-2.0-or-later
//
// A train job while slurmctld asks where it may run, and the nodes among which it may choose.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include <banyan/topo/placement.hpp>

#include "fabric_cache.hpp"

namespace banyan::slurm {

/// Good for one call of job_test.
struct train_job {
    job_record_t& record;
    const topo::request& request;
    const fabric_cache::view& fabric;
    const controller& ctld;

    /// Host indices, ascending: those of `candidates` that are on the fabric and idle now.
    std::vector<std::uint32_t> free_now(const bitstr_t* candidates) const;
    /// Those that no job holds at `time`, by the time limits of the running jobs.
    std::vector<std::uint32_t> free_at(const bitstr_t* candidates, std::time_t time) const;
    /// Those of `names` that slurm.conf and the fabric have, in their order.
    std::vector<std::uint32_t> hosts_of(const std::vector<std::string>& names) const;
    /// Those of the nodes set in `chosen`; empty when one of them is not on the fabric.
    std::vector<std::uint32_t> hosts_of(const bitstr_t* chosen) const;
};

}  // namespace banyan::slurm
