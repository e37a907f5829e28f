// SPDX-License-Identifier: GPL-2.0-or-later
//
// job_submit/banyan: refuses a training job whose numbers do not fit, at submission, with the reason and a
// suggestion, and sets those that follow from the shape. The select plugin cannot: what it answers reaches
// the user as "requested node configuration is not available".
#include "slurmctld-plugin/release/release.hpp"
//
#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "common/guard.hpp"
#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/notice.hpp"
#include "slurmctld-plugin/plan/admin_line.hpp"
#include "slurmctld-plugin/release/layout.hpp"
#include "slurmctld-plugin/spank_entries.hpp"
#include "slurmctld-plugin/submit/cluster_limits.hpp"
#include "slurmctld-plugin/submit/expansion.hpp"
#include "slurmctld-plugin/submit/job_change.hpp"
#include "slurmctld-plugin/submit/twins.hpp"
#include "train/components.hpp"
#include "train/environment.hpp"
#include "train/job_size.hpp"
#include "train/plan_seal.hpp"

namespace {

/// What a prolog reads under one name stands there once: the last one, as Slurm takes it. A plan, which only
/// slurmctld writes, goes.
void tidy(job_desc_msg_t& job) {
    const auto name_of = [](std::string_view entry) {
        constexpr std::string_view prefix = "SPANK_";  // Slurm puts it before every name that lacks it
        if (entry.starts_with(prefix)) entry.remove_prefix(prefix.size());
        return std::string(entry.substr(0, entry.find('=')));
    };
    std::unordered_map<std::string, std::uint32_t> left;
    for (std::uint32_t i = 0; i < job.spank_job_env_size; ++i)
        if (job.spank_job_env[i]) ++left[name_of(job.spank_job_env[i])];
    banyan::slurm::remove_entries(job, [&](std::string_view entry) {
        return --left[name_of(entry)] > 0 || banyan::train::names_plan(entry) ||
               entry.find('=') == std::string_view::npos;
    });
}

/// Where nodes are shared Slurm allocates what was asked for and no more: the ranks of a node on each node,
/// spares included, since each may come to run them.
banyan::result<void> set_numbers(job_desc_msg_t& job, const banyan::topo::request& asked) {
    const auto nodes = banyan::train::all_nodes(asked);
    job.min_nodes = job.max_nodes = nodes;
    // Tasks that --ntasks-per-gpu counts are Slurm's to multiply.
    if (job.ntasks_per_tres != 0 && job.ntasks_per_tres < NO_VAL16)
        return banyan::train::check_tasks_of_gpus(
            asked, banyan::train::gpus_in(job.tres_per_node ? job.tres_per_node : ""), job.ntasks_per_tres);
    if (job.tres_per_job && !job.tres_per_node && !job.tres_per_task) {
        // Of a number in all one node may get the most.
        BANYAN_TRY(const auto each, banyan::train::gpus_of_each(job.tres_per_job, nodes));
        if (each) {
            xfree(job.tres_per_job);
            job.tres_per_node = xstrdup(each->c_str());
        }
    }
    job.ntasks_per_node = static_cast<std::uint16_t>(asked.tasks_per_node());
    job.num_tasks = nodes * asked.tasks_per_node();
    const bool overcommit = job.overcommit != 0 && job.overcommit < NO_VAL8;
    const std::uint64_t per_task =
        job.cpus_per_task != 0 && job.cpus_per_task < NO_VAL16 ? job.cpus_per_task : 1;
    if (!overcommit)
        job.min_cpus =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(job.num_tasks * per_task, NO_VAL - 1));
    return {};
}

/// One component of a heterogeneous job may train. They come one after the other in one thread.
banyan::result<void> check_component(const job_desc_msg_t& job, bool trains) {
    static thread_local bool one_trains = false;
    if (job.het_job_offset == 0 || job.het_job_offset == NO_VAL) one_trains = false;
    if (trains && one_trains)
        return banyan::fail(banyan::errc::invalid_input, banyan::train::second_training_component,
                            "omit it in one, or submit two jobs");
    one_trains = one_trains || trains;
    return {};
}

}  // namespace

extern "C" {

#define BANYAN_EXPORT __attribute__((visibility("default")))

extern BANYAN_EXPORT const char plugin_name[];
const char plugin_name[] = "Checks banyan's --train options";
extern BANYAN_EXPORT const char plugin_type[];
const char plugin_type[] = "job_submit/banyan";
extern BANYAN_EXPORT const uint32_t plugin_version;
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

BANYAN_EXPORT int init() {
    return banyan::guarded(
        "init", [] { return SLURM_SUCCESS; },
        [] {
            banyan::slurm::install_guard_sink();
            return SLURM_SUCCESS;
        });
}

BANYAN_EXPORT int fini() { return SLURM_SUCCESS; }

BANYAN_EXPORT int job_submit(job_desc_msg_t* job, uint32_t, char** err_msg) {
    return banyan::guarded(
        "job_submit", [] { return SLURM_SUCCESS; },
        [&]() -> int {
            const auto refuse = [&](const banyan::error& e, int code) {
                if (err_msg) *err_msg = xstrdup(("banyan: " + e.text()).c_str());
                return code;
            };
            const auto taken = banyan::slurm::take_twins(*job);
            if (!taken) return refuse(taken.error(), ESLURM_NOT_SUPPORTED);
            const auto fits = banyan::train::check_environment(job->spank_job_env, job->spank_job_env_size);
            if (!fits) return refuse(fits.error(), ESLURM_DATA_TOO_LARGE);
            tidy(*job);
            const auto request = banyan::slurm::request_of(*job);
            if (!request) return refuse(request.error(), ESLURM_BAD_TASK_COUNT);
            const auto alone = check_component(*job, request->has_value());
            if (!alone) return refuse(alone.error(), ESLURM_NOT_SUPPORTED);
            const auto plain = banyan::slurm::check_expansion(job->dependency, request->has_value());
            if (!plain) return refuse(plain.error(), ESLURM_NOT_SUPPORTED);
            if (!*request) return SLURM_SUCCESS;
            const auto& asked = (*request)->placement;
            const auto has_nodes = banyan::slurm::fits_in_the_cluster(asked);
            if (!has_nodes) return refuse(has_nodes.error(), ESLURM_INVALID_NODE_COUNT);
            const auto has_room = banyan::slurm::fits_on_a_node(asked);
            if (!has_room) return refuse(has_room.error(), ESLURM_BAD_TASK_COUNT);
            const auto has_memory = banyan::slurm::fits_in_memory(**request);
            if (!has_memory) return refuse(has_memory.error(), ESLURM_INVALID_TASK_MEMORY);
            // Without --no-kill Slurm ends the job with the node that a spare is to replace.
            if (asked.spares > 0 || (*request)->min_nodes > 0) job->kill_on_node_fail = 0;
            const auto done = set_numbers(*job, asked);
            return done ? SLURM_SUCCESS : refuse(done.error(), ESLURM_INVALID_GRES);
        });
}

BANYAN_EXPORT int job_modify(job_desc_msg_t* change, job_record_t* job, uint32_t BANYAN_WHY_PARAMETER) {
    return banyan::guarded(
        "job_modify", [] { return SLURM_SUCCESS; },
        [&]() -> int {
            if (!job || !banyan::slurm::layout_fits(job) || !job->details) return SLURM_SUCCESS;
            banyan::slurm::keep_admin_line(*change, *job);
            const auto fits = banyan::slurm::check_change(*change, *job);
            if (fits) return SLURM_SUCCESS;
            if (char** const to_user = BANYAN_WHY_ARGUMENT)
                *to_user = xstrdup(("banyan: " + fits.error().text()).c_str());
            else
                banyan::slurm::log_info(fits.error().text());
            return ESLURM_NOT_SUPPORTED;
        });
}

}  // extern "C"
