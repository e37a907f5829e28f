// SPDX-License-Identifier: BSD-3-Clause
#include "spank/helper_step.hpp"

#include <fmt/format.h>

#include "common/text.hpp"
#include "spank/plugin.hpp"
#include "spank/srun_args.hpp"
#include "spank/srun_step.hpp"

namespace banyan::spank {
namespace {

/// Tells it at srun -v, whose level srun itself has not set by now, and where the step is `as_large` as the
/// training.
void be_helper(const slurm_options& srun, const std::string& why, bool as_large = false) {
    if (as_large || number_in(srun.text("verbose")) != 0)
        slurm_info("banyan: this step is not the training, its tasks get no ranks: %s", why.c_str());
}

/// Of the job, as its environment has it.
train::job_size size_in_environment(const train::options& asked, std::optional<std::uint32_t> component) {
    const auto number = [&](const char* name) { return number_in(variable_of(name, component)); };
    return train::size_of_training(number("SLURM_JOB_NUM_NODES"), number("SLURM_NTASKS"), asked);
}

}  // namespace

void be_never_training(const slurm_options& srun, const std::string& why) {
    if (says_train() || given_here(train::parallel))
        refuse(fmt::format("this step cannot be the training: {}; omit that, or --train and --train-parallel",
                           why));
    be_helper(srun, why);
}

bool is_helper(const slurm_options& srun, const train::step_words& words, const train::options& asked,
               std::optional<std::uint32_t> component) {
    const auto never = [&](const char* why) {
        be_never_training(srun, why);
        return true;
    };
    if (srun.is_set("overlap")) return never("it says --overlap");
    if (srun.has_components()) return never("it has several components");
    if (srun.is_set("interactive") || srun.is_set("external-launcher") ||
        (srun.is_set("pty") && words.tasks == 0 && !words.training))
        return never("it is a shell, or starts a launcher");
    const auto helper = train::helper_by_size(words, size_in_environment(asked, component));
    if (helper) be_helper(srun, helper->why, helper->as_large);
    return helper.has_value();
}

std::optional<std::uint32_t> component_of(const slurm_options& srun) {
    if (in_step_of_several()) return std::nullopt;
    auto text = srun.text("het-group");
    std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
    if (text.empty()) return 0;
    const auto numbers = expand_hostlist("c[" + text + "]");
    if (!numbers || numbers->size() != 1) return std::nullopt;
    return number_in(numbers->front().substr(1));
}

}  // namespace banyan::spank
