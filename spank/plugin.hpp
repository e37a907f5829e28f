// SPDX-License-Identifier: BSD-3-Clause
//
// One function per Slurm context and hook; dispatch.cpp decides which runs. All return SLURM_SUCCESS or an
// error that the hook may report without harm: an error from the wrong SPANK hook drains the node, so most
// never fail.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "spank/launch.hpp"
#include "spank/spank_slurm.hpp"
#include "train/options.hpp"

namespace banyan::spank {

settings parse_settings(int ac, char** av);

// options.cpp
/// Registers the --train options; every context that may see them must call it.
int register_options(spank_t sp);
/// In srun and sbatch: options and the environment variables for them are made one, and are handed to the
/// job. Ends the process on a wrong value, and in srun on a step that cannot be what it says.
int settle_options(spank_t sp);
/// The text of an option in this process: command line first, its variable second.
std::optional<std::string> option_text(train::which option);
/// All of them, read.
result<train::options> asked_options();
/// True when the option stood on this very command line, not in what sbatch left in the environment. For
/// settle_step: afterwards srun may come to its next component.
bool given_here(train::which option);
/// srun's command line says --train: the step is the training.
bool says_train();
/// What sbatch left in the environment; empty when nothing.
std::string submitted_text(train::which option);
inline bool was_inherited(train::which option) { return !submitted_text(option).empty(); }
/// Ends srun when its line says what only a job's submission can, or something else than that did.
void refuse_what_the_job_decides();

/// Replaces it; nothing when `text` is empty.
void choose(train::which option, std::optional<std::string> text);

// components.cpp: the components of a heterogeneous job, which one srun, sbatch or salloc settles in turn.
// Slurm hands the options of a component on to those after it, by several ways.
using option_texts = std::array<std::optional<std::string>, train::option_count>;
/// Before any option is settled: what of the environment is the user's.
void remember_environment();
void begin_component();
/// The option was given to an earlier component alone. `times_taken`: how often Slurm has given it since.
bool is_left_over(train::which option, unsigned times_taken);
/// The variable for an option as the user set it; null when he did not.
const char* users_variable(train::which option);
/// Keeps what the component was given. An error when it is the second one that trains.
int end_component(const option_texts& chosen);
bool in_heterogeneous_job();
/// This srun starts several components at once.
bool in_step_of_several();
/// Makes a variable empty for the step's tasks: srun has copied its environment, and only adds to it.
void forget_variable(const char* name);
constexpr std::uint32_t most_components = 128;  ///< as many as Slurm takes
/// In srun: whether this component of the job trains; whether one does.
bool trains(std::uint32_t component);
bool trains_somewhere();
/// In srun: the options, and the variables for the step's tasks, become those of one component.
void use_component(std::uint32_t component);

// nested.cpp: sbatch and salloc inside a job
/// Before Slurm reads the environment: what in it is of the job around this one goes. Nothing in srun.
void forget_enclosing_job();
/// Sets the variable for an option for what this process starts; one that the user has set to that stays
/// his.
void tell_option(train::which option, const std::string& value);

// local.cpp: srun
/// Takes out of the environment what a rank has there that starts this srun. To be called before srun has
/// copied it for its tasks.
void forget_ranks();
/// Before forget_ranks: this srun runs in a task of the training.
bool started_by_a_rank();
int announce_step(spank_t sp);

// slurmd.cpp: prolog and epilog of the job on every node, as root
int open_session(spank_t sp, const settings& s);
int detach_session(spank_t sp, const settings& s);

// stepd.cpp: the step on every node
int open_step(spank_t sp, const settings& s);
/// srun has said so, in the step's environment.
bool is_training_step(spank_t sp);
/// What open_step found of the node's checkpoint daemon. A task asks for it: where another plugin has put the
/// task into a container it sees no file of the host.
struct step_daemon {
    std::string socket;
    std::string why_off;  ///< empty = on, for all that is known
};
const step_daemon& daemon_of_step();
/// In slurmstepd itself, as root, and after open_step; they read no file: a task's status was collected; the
/// step is over on this node.
int note_task_end(spank_t sp);
int note_step_end();

// task_environment.cpp
int set_task_environment(spank_t sp);

/// "BANYAN_TP_RANK" and the like; `what` is RANK or SIZE.
std::string dimension_variable(topo::dimension d, const char* what);

/// A variable of the job's environment (stepd) or of this process (elsewhere); empty when it is not set or
/// over 256 KiB.
std::string job_variable(spank_t sp, const char* name);

}  // namespace banyan::spank
