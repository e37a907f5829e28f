// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace banyan::spank {

/// In sbatch and salloc, where no plugin of ours is in slurmctld: the job's numbers follow from its shape and
/// are set as job_submit/banyan sets them. Ends the process, with the reason, where they do not fit.
void settle_submission();

}  // namespace banyan::spank
