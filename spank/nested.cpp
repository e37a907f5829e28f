// SPDX-License-Identifier: BSD-3-Clause
//
// sbatch and salloc in a training job's script, or in a rank, make a job of its own: what the job around them
// was given on a command line is none of its options, and its ranks are none of its tasks'. A variable that
// the user has set himself holds there, too, as those of Slurm do; which are ours is said in a variable.
#include <cstdlib>
#include <cstring>
#include <string>

#include "spank/plugin.hpp"
#include "train/components.hpp"
#include "train/plan_summary.hpp"

namespace banyan::spank {
namespace {

using train::option_count;
using train::option_names;
using train::which;

/// Has the variable's value where that is not the user's.
std::string given(which option) { return std::string(option_names[option].variable) + "_GIVEN"; }

bool says(const char* name, const char* value) {
    const char* text = std::getenv(name);
    return text && value && std::strcmp(text, value) == 0;
}

}  // namespace

void tell_option(which option, const std::string& value) {
    const char* variable = option_names[option].variable;
    if (says(variable, value.c_str())) return;
    ::setenv(variable, value.c_str(), 1);
    ::setenv(given(option).c_str(), value.c_str(), 1);
}

void forget_enclosing_job() {
    if (spank_context() != S_CTX_ALLOCATOR || !std::getenv("SLURM_JOB_ID")) return;
    forget_ranks();
    ::unsetenv(std::string(train::summary_variable).c_str());
    for (std::size_t i = 0; i < option_count; ++i) {
        const auto& name = option_names[i];
        const auto option = static_cast<which>(i);
        if (says(name.variable, std::getenv(given(option).c_str()))) ::unsetenv(name.variable);
        ::unsetenv(given(option).c_str());
        ::unsetenv((std::string("SLURM_SPANK_") + name.env).c_str());
        ::unsetenv(name.env);
        for (std::uint32_t component = 0; component < most_components; ++component)
            ::unsetenv(train::component_variable(option, component).c_str());
    }
}

}  // namespace banyan::spank
