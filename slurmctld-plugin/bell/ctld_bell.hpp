// SPDX-License-Identifier: GPL-2.0-or-later
//
// The one thread of the plugin, for what slurmctld has no call for: to end a job whose node is lost, which
// must not happen where the node leaves it, and to see that the last run of a requeued job is through.
// docs/decisions/024 has why.
#pragma once

namespace banyan::slurm {

/// What is due is looked at under slurmctld's locks: the lost jobs (batch_host.hpp), the requeued ones
/// (early_start.hpp). Does nothing outside slurmctld. With any lock of slurmctld's, from any thread.
void ring() noexcept;

/// For the plugin's end. With any lock of slurmctld's, or none.
void still_bell() noexcept;

}  // namespace banyan::slurm
