// SPDX-License-Identifier: BSD-3-Clause
#include "spank/job_plan.hpp"

#include <cstdlib>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "common/config.hpp"
#include "common/text.hpp"
#include "spank/spank_slurm.hpp"
#include "train/options.hpp"
#include "train/plan_seal.hpp"
#include "train/plan_without_select.hpp"
#include "train/slurm/own_conf.hpp"

namespace banyan::spank {
namespace {

std::string sealed_plan() {
    std::string sealed;
    for (std::size_t i = 0; i < train::max_plan_pieces; ++i) {
        const auto piece = spank_variable(train::plan_variable(i));
        if (piece.empty()) break;
        sealed += piece;
    }
    return sealed;
}

result<void> check_nodes(const train::plan& plan, const job_identity& job) {
    const std::unordered_set<std::string_view> own(job.nodes.begin(), job.nodes.end());
    for (const auto* names : {&plan.nodes, &plan.spares})
        for (const auto& name : *names)
            if (!own.contains(name))
                return fail(errc::denied, fmt::format("the plan names {}, which is not the job's", name));
    return {};
}

/// Its shape and its numbers are the user's, the rest is slurmd's. Other options change no plan.
result<train::plan> own_plan(const job_identity& job) {
    BANYAN_TRY(const auto asked, train::options_of_plan([](train::which option) {
                   return spank_variable(train::option_names[option].env);
               }));
    return train::plan_without_select(
        asked, {job.job, job.restart, job.nodes, static_cast<std::uint32_t>(job.nodes.size())});
}

}  // namespace

result<std::string> slurmd_variable(const char* name) {
    const char* value = std::getenv(name);
    if (!value || !*value)
        return fail(errc::invalid_input, fmt::format("{} is not set in the prolog's environment", name));
    return std::string(value);
}

result<std::uint32_t> slurmd_number(const char* name, std::uint32_t most) {
    BANYAN_TRY(const auto text, slurmd_variable(name));
    BANYAN_TRY(const auto number, parse_number(text, most));
    return static_cast<std::uint32_t>(number);
}

std::string spank_variable(const std::string& name) {
    const char* value = std::getenv(("SPANK_" + name).c_str());
    return value ? value : "";
}

result<job_identity> job_of_slurmd() {
    job_identity out;
    BANYAN_TRY(out.job, slurmd_number("SLURM_JOB_ID", UINT32_MAX));
    BANYAN_TRY(out.uid, slurmd_number("SLURM_JOB_UID", UINT32_MAX));
    BANYAN_TRY(out.node, slurmd_variable("SLURMD_NODENAME"));
    // Slurm leaves the next two away where it has no credential of the job at hand.
    BANYAN_TRY(out.restart, slurmd_number("SLURM_JOB_RESTART_COUNT", UINT32_MAX));
    BANYAN_TRY(const auto nodes, slurmd_variable("SLURM_NODELIST"));
    BANYAN_TRY(out.nodes, expand_hostlist(nodes));
    return out;
}

result<train::plan> trusted_plan(const settings& s, const job_identity& job) {
    BANYAN_TRY(const auto own, libslurm::plans_without_select());
    if (own) return own_plan(job);
    const auto asked = spank_variable(train::option_names[train::parallel].env);
    const auto sealed = sealed_plan();
    if (asked.empty() || sealed.empty())
        return fail(
            errc::not_found, "the job has no plan of its ranks",
            "--train-ckpt needs --train-parallel, and SelectType=select/cons_tres_banyan in slurm.conf");
    if (asked.size() > train::max_option_text)
        return fail(errc::invalid_input, "--train-parallel is too long");
    BANYAN_TRY(const auto shape, topo::parse_shape(asked));
    BANYAN_TRY(const auto file, config_file::load(config_of(s)));
    BANYAN_TRY(auto opened, train::open_plan(file.section("munge").text("socket"), sealed));
    BANYAN_TRY(const auto conf, libslurm::own_conf());
    if (opened.writer != conf->slurm_user_id)
        return fail(errc::denied, fmt::format("uid {} wrote the job's plan, and not slurmctld's user ({})",
                                              opened.writer, conf->slurm_user_id));
    const auto& plan = opened.what;
    if (plan.job != job.job || plan.restart != job.restart)
        return fail(errc::denied,
                    fmt::format("the plan is that of job {}, start {}; this is job {}, start {}", plan.job,
                                plan.restart, job.job, job.restart));
    if (plan.shape != shape.text())
        return fail(errc::denied,
                    fmt::format("the plan is for {}, and --train-parallel is {}", plan.shape, shape.text()));
    BANYAN_CHECK(check_nodes(plan, job));
    return std::move(opened.what);
}

}  // namespace banyan::spank
