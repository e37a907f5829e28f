// SPDX-License-Identifier: BSD-3-Clause
//
// What this srun's command line says of its size, as banyan counts it. Told apart from what the batch
// script's environment says, by which srun would go on its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "spank/slurm_options.hpp"
#include "train/job_size.hpp"
#include "train/step_numbers.hpp"

namespace banyan::spank {

/// Of this process; empty when it is not set.
std::string variable(const char* name);
/// 0 when it is none.
std::uint32_t number_in(const std::string& text);

/// The variable that srun reads for a component of a heterogeneous job: its own where it has one.
std::string variable_of(const char* name, std::optional<std::uint32_t> component);

/// With which this srun, sbatch or salloc ends on an error of its own.
int code_of_errors();

/// Before srun reads its environment: in a training job, what of it would be wrong for most steps.
void prepare_srun();

/// For a step in a job: what was typed. `component`: of the heterogeneous job whose environment this is.
train::step_words words_of(const slurm_options& srun, std::optional<std::uint32_t> component);
/// For an allocation: what srun, sbatch or salloc would ask for.
train::stated_numbers stated_by(const slurm_options& options);

/// -G as a number for each node: it counts those of the spares, too, which the step leaves out. False when
/// Slurm refuses that; ends the process where it does not divide.
bool share_out_gpus(const slurm_options& options, const topo::request& request);

}  // namespace banyan::spank
