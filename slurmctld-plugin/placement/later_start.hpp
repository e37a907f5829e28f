// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a training job would gain by a later start: for --train-wait, and for the AdminComment line of one
// that did not wait.
#pragma once

#include "slurmctld-plugin/placement/train_job.hpp"
#include "train/admin_comment.hpp"

namespace banyan::slurm {

/// A job at the earliest time at which it can start: now, or later.
struct first_start {
    std::time_t time = 0;
    std::vector<std::uint32_t> free;  ///< host indices
    topo::placement placement;        ///< on some of these
};

/// A better placement, and the time at which all of its nodes should be free.
struct later_start {
    std::time_t time = 0;
    topo::placement placement;
};

/// None when nothing much better comes up within `longest` seconds, or when that time is over. It runs from
/// the first call for a job that could start now.
std::optional<later_start> worth_waiting(const train_job& job, const bitstr_t* candidates,
                                         const first_start& first, std::time_t longest);

/// For the AdminComment line: the first of some hours after the start at which the job would be placed much
/// better.
std::optional<train::better_later> gain_of_waiting(const train_job& job, const bitstr_t* candidates,
                                                   const first_start& first);

}  // namespace banyan::slurm
