// SPDX-License-Identifier: BSD-3-Clause
//
// How slurmctld knows a step that banyan-run started: by the words that banyan-run always puts first. Slurm
// keeps the command line of every srun with its step.
#pragma once

#include <string>
#include <string_view>

namespace banyan::train {

/// A lost node or rank must end the step, for its peers cannot go on; the next step is banyan-run's part.
constexpr const char* step_ends_with_a_node = "--no-kill=off";
constexpr const char* step_ends_with_a_rank = "--kill-on-bad-exit=1";

inline bool starts_again(std::string_view srun_line) {
    const auto words = " " + std::string(step_ends_with_a_node) + " " + step_ends_with_a_rank + " -N ";
    return srun_line.find(words) != std::string_view::npos;
}

}  // namespace banyan::train
