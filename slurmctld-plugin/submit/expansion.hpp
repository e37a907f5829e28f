// SPDX-License-Identifier: GPL-2.0-or-later
//
// A job that is to give its nodes to a running one (--dependency=expand). That is select/cons_tres' own, and
// nothing for jobs that train: a plan has a slot for each of its nodes, and none for one that comes later.
#pragma once

#include "common/result.hpp"

namespace banyan::slurm {

/// An error when `dependency`, as Slurm reads it, names a training job that is to get nodes, or a job of this
/// dependency that `trains` is to give its own. Null, or of another kind: no error. For slurmctld, which
/// holds its jobs locked.
result<void> check_expansion(const char* dependency, bool trains);

}  // namespace banyan::slurm
