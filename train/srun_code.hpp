// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace banyan::train {

/// banyan-run has srun end with this code on errors of its own, such as a wrong option (SLURM_EXIT_ERROR),
/// and so tells them from those of the program. The SPANK plugin keeps the variable from the tasks.
constexpr int srun_error_code = 119;
constexpr const char* srun_error_variable = "SLURM_EXIT_ERROR";
/// Set beside it where banyan-run has set it, and not the user.
constexpr const char* srun_error_is_ours = "BANYAN_SRUN_ERROR";

}  // namespace banyan::train
