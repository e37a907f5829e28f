// SPDX-License-Identifier: BSD-3-Clause
//
// How slurmctld knows a step that banyan-run started: by the words that banyan-run always puts first. Slurm
// keeps the command line of every srun with its step.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace banyan::train {

/// A lost node or rank must end the step, for its peers cannot go on; the next step is banyan-run's part.
constexpr std::array words_of_banyan_run{"--no-kill=off", "--kill-on-bad-exit=1", "--train"};

inline bool starts_again(std::string_view srun_line) {
    std::string words = " ";
    for (const char* word : words_of_banyan_run) words += std::string(word) + " ";
    return srun_line.find(words) != std::string_view::npos;
}

}  // namespace banyan::train
