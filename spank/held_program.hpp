// SPDX-License-Identifier: BSD-3-Clause
//
// A training program must not start without its rank: as many copies as the step has tasks would each train
// alone. On a node whose Slurm does not load the plugin none of our functions runs, so srun takes the
// program's name out of the step, and the node's plugin puts it back once the task has its rank.
#pragma once

#include "spank/spank_slurm.hpp"

namespace banyan::spank {

/// In srun, before it launches the step.
void hold_program(spank_t sp);
/// In a task, once its environment is complete.
void release_program(spank_t sp);

/// Has the program's name meanwhile, among the step's variables.
constexpr const char* program_variable = "BANYAN_PROGRAM";
/// Of a step that srun refuses after slurmctld has made it: the code with which each task ends at once.
constexpr const char* refusal_variable = "BANYAN_REFUSED";

}  // namespace banyan::spank
