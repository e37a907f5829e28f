// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-run's command line: its own options come first; from the first word that is none of them, all goes
// to srun as it is. srun's grammar is never interpreted.
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
    std::chrono::milliseconds wait{30000};  ///< for enough nodes, or a controller that does not answer
    std::chrono::milliseconds start_within{60000};  ///< a restart, until Slurm gives it a step
    bool verbose = false, help = false, version = false;
    std::vector<std::string> srun;  ///< options of srun, program, arguments
};

/// `arguments` without the program's name.
result<options> split_arguments(const std::vector<std::string>& arguments);

/// What --help prints.
std::string help_text();

}  // namespace banyan::supervisor
