// SPDX-License-Identifier: GPL-2.0-or-later
//
// When a requeued job starts again. From the end of its last run, on every node, Slurm would take two
// minutes, unless the job has a time that is then still to come.
#pragma once

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// A job whose last run is being ended begins as soon as that run is through: the bell is rung. By itself,
/// where the bell does not ring, within the time that Slurm gives the processes to end. A job that Slurm
/// itself starts at once (--requeue=expedite) is left alone.
void begin_when_clean(job_record_t& job);

/// For the bell, under its locks. Whether a run is not through yet.
bool start_what_is_clean();

}  // namespace banyan::slurm
