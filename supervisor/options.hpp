// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-run's command line: its own options come first; from the first word that is none of them, all goes
// to srun as it is. srun's grammar is not interpreted, but for one option that says what a lost node means.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace banyan::supervisor {

struct options {
    std::uint32_t max_restarts = 1000;
    std::uint32_t max_idle_restarts = 3;
    std::chrono::milliseconds wait{30000};          ///< for a slurmctld that does not answer
    std::chrono::milliseconds start_within{60000};  ///< a restart, until Slurm gives it a step
    bool debug = false, help = false, version = false;
    std::vector<std::string> srun;  ///< options of srun, program, arguments
};

/// `arguments` without the program's name.
result<options> split_arguments(const std::vector<std::string>& arguments);

/// Whether the user's words for srun say --no-kill: the step is to go on without a node that it loses. srun
/// alone knows which words are values, and where the program begins. In doubt it is an option: the answer is
/// yes.
bool goes_on_without_a_node(const std::vector<std::string>& srun);

/// What --help prints.
std::string help_text();

}  // namespace banyan::supervisor
