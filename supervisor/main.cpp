// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-run: srun that starts a step again after a fault. Runs as the user, inside the job's allocation.
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "common/build_info.hpp"
#include "common/text.hpp"
#include "supervisor/supervisor.hpp"

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

struct component {
    std::uint32_t number, job;
    job_view view;
};

/// The component of a heterogeneous job that has a plan.
std::optional<component> training_component() {
    constexpr std::uint32_t most = 128;  // as many as Slurm takes
    for (std::uint32_t number = 0; number < most; ++number) {
        const char* text = std::getenv(("SLURM_JOB_ID_HET_GROUP_" + std::to_string(number)).c_str());
        const auto job = parse_number(text ? text : "", UINT32_MAX - 16);
        if (!job) break;
        auto view = query_job(static_cast<std::uint32_t>(*job));
        if (view && plan_of(view->admin_comment).nodes)
            return component{number, static_cast<std::uint32_t>(*job), std::move(*view)};
    }
    return {};
}

result<int> run(const std::vector<std::string>& arguments) {
    BANYAN_TRY(auto opts, split_arguments(arguments));
    if (opts.help) return std::fputs(help_text, stdout) < 0 ? 1 : 0;
    if (opts.version) return std::puts(version_line("banyan-run").c_str()) < 0 ? 1 : 0;
    BANYAN_TRY(const auto job, job_of_environment());
    BANYAN_TRY(auto view, query_job(job));
    if (view.heterogeneous)
        if (auto training = training_component())
            return banyan::supervisor::supervisor(std::move(opts), training->job, std::move(training->view),
                                                  training->number)
                .run();
    return banyan::supervisor::supervisor(std::move(opts), job, std::move(view)).run();
}

}  // namespace

int main(int argc, char** argv) {
    const auto code = run({argv + 1, argv + argc});
    if (code) return *code;
    std::fprintf(stderr, "banyan-run: %s\n", code.error().text().c_str());
    return code.error().code == errc::invalid_input ? 2 : 1;
}
