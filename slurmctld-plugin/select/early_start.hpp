// SPDX-License-Identifier: GPL-2.0-or-later
//
// When a requeued job starts again. From the end of its last run, on every node, Slurm would take two
// minutes, unless the job has a time that is then still to come.
#pragma once

#include "slurmctld-plugin/slurm_compat.hpp"

namespace banyan::slurm {

/// A job whose last run is being ended begins as soon as that run is through. By itself, where nobody looks
/// for jobs that may run, within the time that Slurm gives the processes to end.
void begin_when_clean(job_record_t& job);

/// For the plugin's look at whether a job's last run is through, which slurmctld asks for each job that
/// waits, before it looks at the job's time, with its lock to write jobs.
void start_what_is_clean();

}  // namespace banyan::slurm
