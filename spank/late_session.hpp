// SPDX-License-Identifier: BSD-3-Clause
//
// A step that begins where no prolog was run for this run of its job. slurmd of 22.05 leaves the prolog out
// when a job comes back within two seconds after anything else was started or ended on the node: it looks for
// expired jobs no more often (last_scan in src/common/slurm_cred.c), finds the run before, and takes the new
// run's prolog for done. A node that lost power is back with that knowledge, and without its daemon. A daemon
// that lost everything after the prolog is the same to a step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "spank/launch.hpp"
#include "train/options.hpp"

namespace banyan::spank {

/// Opens the session of the job's present run at the daemon, as its prolog would have: by the summary of the
/// plan, which slurmctld tells, or where Slurm's own plugin chose the nodes by the plan that follows from
/// `asked`. Where no daemon answers, one is started, outside of the step. `nodes`: of the step, slot by slot;
/// `checkpoint`: --train-ckpt, by variable or option. Returns how often the job was requeued. A few RPCs, in
/// a process of their own that gets 15 s: a step that cannot be ended for a minute drains the node.
result<std::uint32_t> open_late_session(const settings& s, const daemon_paths& paths, std::uint32_t job,
                                        const std::vector<std::string>& nodes, const train::options& asked,
                                        const std::string& checkpoint);

}  // namespace banyan::spank
