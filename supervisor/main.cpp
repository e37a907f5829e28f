// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-run: srun that starts a step again after a fault. Runs as the user, inside the job's allocation.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "common/build_info.hpp"
#include "common/command.hpp"
#include "common/text.hpp"
#include "supervisor/supervisor.hpp"
#include "train/components.hpp"
#include "train/slurm/plan_query.hpp"

namespace {

using namespace banyan;
using namespace banyan::supervisor;

result<std::uint32_t> job_of_environment() {
    const char* text = std::getenv("SLURM_JOB_ID");
    if (!text || !*text)
        return fail(errc::invalid_input, "SLURM_JOB_ID is not set: this is not inside an allocation",
                    "use it in a script for sbatch, or in a shell of salloc");
    const auto job = parse_number(text, UINT32_MAX - 16);
    if (!job || *job == 0)
        return fail(errc::invalid_input, std::string("SLURM_JOB_ID \"") + text + "\" is no job id");
    return static_cast<std::uint32_t>(*job);
}

std::string variable(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value ? value : "";
}

/// With which the job, or its component, was submitted, as far as its plan follows from them.
result<train::options> options_of_environment(std::optional<std::uint32_t> number) {
    return train::options_of_plan([&](train::which option) {
        return variable(number ? train::component_variable(option, *number)
                               : std::string("SLURM_SPANK_") + train::option_names[option].env);
    });
}

/// The plan that nobody stores, of a job whose nodes Slurm's own plugin chose; empty for one that asked for
/// no ranks, and where slurmctld would have stored it.
result<job_plan> plan_without_store(const job_state& state, std::optional<std::uint32_t> number) {
    BANYAN_TRY(const auto asked, options_of_environment(number));
    if (!asked.parallel) return job_plan{};
    BANYAN_TRY(const auto own, plans_without_select());
    if (!own) return job_plan{};
    auto told = state.told;
    const auto* list = "SLURM_JOB_NODELIST";
    told.before = train::order_at_start(
        asked, told, variable(number ? fmt::format("{}_HET_GROUP_{}", list, *number) : list));
    return plan_of(asked, std::move(told));
}

/// Of a job without a plan, and of one whose plan is not known: the numbers are then those of srun's own
/// words.
job_plan plan_to_follow(std::uint32_t job, const job_state& state,
                        std::optional<std::uint32_t> number = std::nullopt) {
    const auto told = train::query_plan(job, state.restarts);
    if (told && *told) {
        auto plan = plan_of(**told);
        if (const auto asked = options_of_environment(number)) plan.nodes_of_all = plan.nodes + asked->spares;
        return plan;
    }
    auto own =
        told || told.error().code != errc::unavailable ? plan_without_store(state, number) : job_plan{};
    if (own && own->nodes) return std::move(*own);
    if (!told || !own)
        std::fprintf(stderr, "banyan-run: %s; going on as for a job without --train-parallel\n",
                     printable((told ? own.error() : told.error()).text()).c_str());
    return {};
}

struct component {
    std::uint32_t job;
    job_state state;
    job_plan plan;
};

/// The component of a heterogeneous job that has a plan.
std::optional<component> training_component() {
    constexpr std::uint32_t most = 128;  // as many as Slurm takes
    for (std::uint32_t number = 0; number < most; ++number) {
        const char* text = std::getenv(("SLURM_JOB_ID_HET_GROUP_" + std::to_string(number)).c_str());
        const auto job = parse_number(text ? text : "", UINT32_MAX - 16);
        if (!job) break;
        const auto id = static_cast<std::uint32_t>(*job);
        auto state = query_job(id);
        if (!state) continue;
        auto plan = plan_to_follow(id, *state, number);
        plan.component = number;
        if (plan.nodes) return component{id, std::move(*state), std::move(plan)};
    }
    return {};
}

/// Without the plugin srun would start as many copies of the program, each of them alone.
result<void> check_srun() {
    const auto help = capture({"srun", "--help"}, {std::chrono::seconds(20)});
    if (!help || !help->good() || help->text.find("--train-parallel") != std::string::npos) return {};
    return fail(errc::unavailable,
                "srun on this host does not load spank_banyan.so, so the tasks would not get their ranks",
                "banyan-doctor on this host says what is missing");
}

result<int> run(const std::vector<std::string>& arguments) {
    BANYAN_TRY(auto opts, split_arguments(arguments));
    if (opts.help) return std::fputs(help_text().c_str(), stdout) < 0 ? 1 : 0;
    if (opts.version) return std::puts(version_line("banyan-run").c_str()) < 0 ? 1 : 0;
    BANYAN_TRY(const auto job, job_of_environment());
    BANYAN_TRY(auto state, query_job(job));
    using banyan::supervisor::supervisor;
    if (state.heterogeneous)
        if (auto training = training_component()) {
            BANYAN_CHECK(check_srun());
            return supervisor(std::move(opts), training->job, std::move(training->state),
                              std::move(training->plan))
                .run();
        }
    auto plan = plan_to_follow(job, state);
    if (plan.nodes) BANYAN_CHECK(check_srun());
    return supervisor(std::move(opts), job, std::move(state), std::move(plan)).run();
}

}  // namespace

int main(int argc, char** argv) {
    const auto code = run({argv + 1, argv + argc});
    if (code) return *code;
    std::fprintf(stderr, "banyan-run: %s\n", code.error().text().c_str());
    return code.error().code == errc::invalid_input ? 2 : 1;
}
