// SPDX-License-Identifier: BSD-3-Clause
//
// Slurm has one set of options a process: what stood before a ":" still holds behind it, in its own cache, in
// the job's SPANK environment, and in variables that sbatch and salloc set for their children. So each
// component forgets what was not given to itself.
#include "train/components.hpp"

#include <cstdlib>
#include <string>
#include <vector>

#include "spank/plugin.hpp"
#include "spank/srun_step.hpp"

namespace banyan::spank {
namespace {

using train::option_count;
using train::option_names;
using train::which;

struct from_user {
    std::optional<std::string> variable;
    bool carried;  // as sbatch leaves it to the sruns of its script
};
std::array<from_user, option_count> users;
std::vector<option_texts> settled;

std::string carrier(std::size_t option) { return std::string("SLURM_SPANK_") + option_names[option].env; }

bool inside_allocation() { return spank_context() == S_CTX_LOCAL && std::getenv("SLURM_JOB_ID"); }

void publish(std::uint32_t component) {
    for (std::size_t i = 0; i < option_count; ++i) {
        const auto name = train::component_variable(static_cast<which>(i), component);
        if (const auto& text = settled[component][i])
            ::setenv(name.c_str(), text->c_str(), 1);
        else
            ::unsetenv(name.c_str());
    }
}

}  // namespace

void forget_variable(const char* name) {
    if (std::getenv(name)) ::setenv(name, "", 1);
}

void remember_environment() {
    settled.clear();
    for (std::size_t i = 0; i < option_count; ++i) {
        const char* variable = std::getenv(option_names[i].variable);
        users[i].variable = variable && *variable ? std::optional<std::string>(variable) : std::nullopt;
        users[i].carried = std::getenv(carrier(i).c_str()) != nullptr;
    }
}

void begin_component() {
    if (settled.size() < most_components) settled.emplace_back();
}

bool is_left_over(which option, unsigned times_taken) {
    if (settled.size() < 2 || users[option].carried) return false;
    // sbatch and salloc have set the variable for their children, and read it again for each component.
    const unsigned by_variable = std::getenv(carrier(option).c_str()) ? 1 : 0;
    return times_taken <= by_variable;
}

const char* users_variable(which option) {
    const auto& variable = users[option].variable;
    return variable ? variable->c_str() : nullptr;
}

int end_component(const option_texts& chosen) {
    settled.back() = chosen;
    if (settled.size() < 2 || inside_allocation()) return SLURM_SUCCESS;
    if (settled.size() == 2) publish(0);
    publish(static_cast<std::uint32_t>(settled.size() - 1));
    unsigned training = 0;
    for (const auto& component : settled) training += component[train::parallel].has_value();
    if (training == 1 && spank_context() == S_CTX_LOCAL) {
        refuse(
            "srun starts all components as one step, which cannot tell its tasks their ranks; make "
            "the "
            "job with sbatch or salloc, and start the training in it with banyan-run, or srun --het-group=N");
    }
    if (training < 2 || !chosen[train::parallel]) return SLURM_SUCCESS;
    refuse(std::string(train::second_training_component) + "; omit it in one, or submit two jobs" +
           (users[train::parallel].variable
                ? std::string("; the variable ") + option_names[train::parallel].variable +
                      " gives it to each component"
                : ""));
}

bool in_step_of_several() { return settled.size() > 1; }

bool in_heterogeneous_job() { return settled.size() > 1 || std::getenv("SLURM_HET_SIZE"); }

bool trains(std::uint32_t component) {
    return std::getenv(train::component_variable(train::parallel, component).c_str());
}

bool trains_somewhere() {
    for (std::uint32_t component = 0; component < most_components; ++component)
        if (trains(component)) return true;
    return false;
}

void use_component(std::uint32_t component) {
    for (std::size_t i = 0; i < option_count; ++i) {
        const auto option = static_cast<which>(i);
        const char* text = std::getenv(train::component_variable(option, component).c_str());
        const bool right = text && train::check(option, text);
        choose(option, right ? std::optional<std::string>(text) : std::nullopt);
        if (right)
            tell_option(option, text);
        else
            forget_variable(option_names[i].variable);
    }
}

}  // namespace banyan::spank
