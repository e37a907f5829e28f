// SPDX-License-Identifier: BSD-3-Clause
//
// What this srun's command line says of its size, as banyan counts it. Told apart from what the batch
// script's environment says, by which srun would go on its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "spank/srun_options.hpp"
#include "train/numbers.hpp"
#include "train/step_numbers.hpp"

namespace banyan::spank {

/// Of this process; empty when it is not set.
std::string variable(const char* name);
/// 0 when it is none.
std::uint32_t number_in(const std::string& text);

/// With which this srun, sbatch or salloc ends on an error of its own.
int code_of_errors();

/// Before srun reads its environment: in a training job, what of it would be wrong for most steps.
void prepare_srun();

/// For a step in a job: what was typed. `component`: of the heterogeneous job whose environment this is.
train::step_words words_of(const srun_options& srun, std::optional<std::uint32_t> component);
/// For an allocation: what srun would ask for.
train::stated_numbers stated_by(const srun_options& srun);

}  // namespace banyan::spank
