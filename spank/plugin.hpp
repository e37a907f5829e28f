// SPDX-License-Identifier: BSD-3-Clause
//
// One function per Slurm context and hook; dispatch.cpp decides which runs. All return SLURM_SUCCESS or an
// error that the hook may report without harm: an error from the wrong SPANK hook drains the node, so most
// never fail.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "spank/launch.hpp"
#include "spank/spank_slurm.hpp"
#include "spank/train_options.hpp"

namespace banyan::spank {

settings parse_settings(int ac, char** av);

// options.cpp
/// Registers the --train options; every context that may see them must call it.
int register_options(spank_t sp);
/// In srun and sbatch: options and their environment twins are made one, and are handed to the job. Ends the
/// process on a wrong value, and in srun on a step that cannot be what it says.
int settle_options(spank_t sp);
/// The text of an option in this process: command line first, twin second.
std::optional<std::string> option_text(train::which option);
/// All of them, read.
result<train::options> asked_options();
/// True when the option stood on this very command line, not in what sbatch left in the environment. For
/// settle_step: afterwards srun may come to its next component.
bool given_here(train::which option);
/// sbatch left a value in the environment.
bool was_inherited(train::which option);

// local.cpp: srun
/// Takes out of the environment what a rank has there that starts this srun. To be called before srun has
/// copied it for its tasks.
void forget_ranks();
int announce_step(spank_t sp);

// slurmd.cpp: prolog and epilog of the job on every node, as root
int open_session(spank_t sp, const settings& s);
int detach_session(spank_t sp, const settings& s);

// stepd.cpp: the step on every node
int open_step(spank_t sp, const settings& s);
int set_task_environment(spank_t sp, const settings& s);

/// "BANYAN_TP_RANK" and the like; `what` is RANK or SIZE.
std::string dimension_variable(topo::dimension d, const char* what);

/// A variable of the job's environment (stepd) or of this process (elsewhere); empty when it is not set or
/// over 256 KiB.
std::string job_variable(spank_t sp, const char* name);

}  // namespace banyan::spank
