// SPDX-License-Identifier: BSD-3-Clause
//
// In srun, between its command line and the step: whether the step is the training, and srun's own options
// for it where nobody gave them. What is refused ends srun, or sbatch: an error that we return is not heard
// where plugstack.conf calls the plugin optional.
#pragma once

#include <optional>
#include <string>

#include <banyan/topo/placement.hpp>

#include "spank/spank_slurm.hpp"

namespace banyan::spank {

struct step_decision {
    /// Of a training step, which must be laid out as it says; nothing for any other step.
    std::optional<topo::request> training;
    std::optional<std::uint32_t> restart;  ///< how often the job was requeued, where slurmctld has told it
};

/// Decides, and sets srun's options. Ends the process when the step is refused.
void settle_step(spank_t sp);
/// What settle_step found last.
const step_decision& this_step();

/// Says why, and ends this srun, sbatch or salloc as its own errors do: what it holds it gives back.
[[noreturn]] void refuse(const std::string& why);

}  // namespace banyan::spank
