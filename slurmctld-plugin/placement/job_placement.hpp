// SPDX-License-Identifier: GPL-2.0-or-later
//
// job_test for training jobs: ask placement for nodes, narrow the candidates to them, let cons_tres decide,
// check its answer. cons_tres with all candidates that the fabric joins is the fallback at every turn, so a
// training job never starts later than a plain one.
#pragma once

#include <functional>

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// cons_tres' own job_test, its other arguments bound.
struct cons_tres {
    std::function<int(bitstr_t* node_bitmap)> ask;  ///< candidates in, chosen out
    /// The same on an idle machine: a fraction of the time that a look into the future takes.
    std::function<int(bitstr_t* node_bitmap)> ask_if_idle;
    std::uint32_t min_nodes = 0;
    bool may_preempt = false;
};

/// Returns what cons_tres returned. `node_bitmap` holds the chosen nodes on success, as job_test promises.
int place_job(job_record_t& job, bitstr_t* node_bitmap, test_mode mode, const cons_tres& inner);

}  // namespace banyan::slurm
