// SPDX-License-Identifier: GPL-2.0-or-later
//
// What no node of this cluster, or not all of them together, could ever give a training job. Errors name the
// line to type.
#pragma once

#include <banyan/topo/placement.hpp>

#include "common/result.hpp"
#include "slurmctld-plugin/job_request.hpp"

namespace banyan::slurm {

/// Slurm lets a job wait for nodes that a partition may get one day; where the number follows from a shape it
/// is a slip of the finger.
result<void> fits_in_the_cluster(const topo::request& asked);

/// More ranks than a node has CPUs would train on none, and would cost slurmctld the more. --overcommit,
/// which Slurm takes as leave for any number of tasks, changes neither.
result<void> fits_on_a_node(const topo::request& asked);

/// The state of a node's ranks is kept in its memory. Where Slurm shares that out, too, it knows how much
/// there is.
result<void> fits_in_memory(const job_request& asked);

}  // namespace banyan::slurm
