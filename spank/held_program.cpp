// SPDX-License-Identifier: BSD-3-Clause
#include "spank/held_program.hpp"

#include <cstdlib>
#include <cstring>
#include <string>

#include "spank/plugin.hpp"
#include "spank/slurm_options.hpp"

namespace banyan::spank {
namespace {

/// What slurmstepd looks for and does not find: the user reads it in Slurm's error message.
constexpr const char* nobody =
    "not started: this node did not tell the program its rank, for its Slurm does not load spank_banyan.so "
    "(banyan-doctor on the node says why)";

/// The words of the step as Slurm itself keeps them; null when there are none.
char** program_words(spank_t sp) {
    int count = 0;
    char** words = nullptr;
    if (spank_get_item(sp, S_JOB_ARGV, &count, &words) != ESPANK_SUCCESS || count < 1) return nullptr;
    return words;
}

}  // namespace

void hold_program(spank_t sp) {
    const auto* srun = slurm_options::of_srun();
    // The first word is a file of programs, one that srun has yet to copy, or goes into a container's bundle.
    if (!srun || srun->is_set("multi-prog") || srun->is_set("bcast") || srun->is_set("container")) return;
    char** words = program_words(sp);
    if (!words || !words[0]) return;
    ::setenv(program_variable, words[0], 1);
    words[0] = ::strdup(nobody);  // srun frees none of them
}

void release_program(spank_t sp) {
    char** words = program_words(sp);
    if (!words || !words[0] || std::strcmp(words[0], nobody) != 0) return;
    const auto program = job_variable(sp, program_variable);
    if (program.empty()) return;
    words[0] = ::strdup(program.c_str());  // in the task's process, which becomes the program
    spank_unsetenv(sp, program_variable);
}

}  // namespace banyan::spank
