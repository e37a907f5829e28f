// SPDX-License-Identifier: BSD-3-Clause
//
// Which of a job's steps are not the training (decision 029).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "spank/slurm_options.hpp"
#include "train/options.hpp"
#include "train/step_numbers.hpp"

namespace banyan::spank {

/// The component that a step is of; 0 for that of a job which has none. Nothing for several at once.
std::optional<std::uint32_t> component_of(const slurm_options& srun);

/// Whether the step is a helper by its line alone. `asked`: with the shape of the job, or one of its own.
/// `component`: of the heterogeneous job whose environment this is.
bool is_helper(const slurm_options& srun, const train::step_words& words, const train::options& asked,
               std::optional<std::uint32_t> component);

/// What is never the training is a helper. Ends srun where its line says that it is the training.
void be_never_training(const slurm_options& srun, const std::string& why);

}  // namespace banyan::spank
