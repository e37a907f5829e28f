// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/placement/kept_nodes.hpp"

#include <algorithm>
#include <ctime>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "slurmctld-plugin/bell/ctld_bell.hpp"
#include "slurmctld-plugin/containers.hpp"
#include "slurmctld-plugin/ctld_tables.hpp"
#include "slurmctld-plugin/notice.hpp"
#include "slurmctld-plugin/plan/job_plan.hpp"
#include "slurmctld-plugin/plan/plan_builder.hpp"
#include "slurmctld-plugin/release/layout.hpp"
#include "train/job_size.hpp"
#include "train/min_dp.hpp"

namespace banyan::slurm {
namespace {

constexpr std::time_t for_all_s = 10;    // a job waits so long for all of its nodes,
constexpr std::time_t for_fewer_s = 20;  // then for a start on those that it had,
constexpr std::time_t longest_s = 60;    // and its last run may take so long to end

struct kept_nodes {
    std::uint32_t job_id;
    train::plan plan;  ///< of its last run: the nodes are those of the slots and the spares
    std::time_t since;
    std::time_t waits_since = 0;              ///< for nodes alone: its last run is through
    std::optional<std::uint32_t> priority{};  ///< its usual one, when it asks for fewer nodes
};

/// In memory alone: after a restart of slurmctld the job waits for all of its nodes.
std::vector<kept_nodes>& all_kept() {
    static std::vector<kept_nodes> all;
    return all;
}

std::vector<int> nodes_of(const kept_nodes& kept, const ctld_tables& ctld) {
    auto out = ctld.find_nodes(kept.plan.nodes);
    const auto spares = ctld.find_nodes(kept.plan.spares);
    out.insert(out.end(), spares.begin(), spares.end());
    std::erase(out, -1);
    return out;
}

const kept_nodes* kept_for(const job_record_t& job) {
    const auto& all = all_kept();
    const auto at = std::ranges::find(all, job.job_id, &kept_nodes::job_id);
    return at == all.end() ? nullptr : &*at;
}

/// Before all other jobs, and no number that Slurm gives.
constexpr std::uint32_t first = NO_VAL - 1;

/// The job's CPUs and tasks are multiples of its nodes (job_submit.cpp). slurmctld takes min_cpus from
/// orig_min_cpus each time that it looks at a job.
void ask_for(job_record_t& job, std::uint32_t nodes) {
    auto& its = *job.details;
    if (its.min_nodes == 0 || its.min_nodes == nodes) return;
    its.min_cpus = its.orig_min_cpus = (its.orig_min_cpus * nodes + its.min_nodes - 1) / its.min_nodes;
    if (its.ntasks_per_node != 0 && its.num_tasks != 0) its.num_tasks = nodes * its.ntasks_per_node;
    its.min_nodes = nodes;
}

/// slurmctld asks no select plugin where fewer nodes are free than the job wants, or while a job waits that
/// comes before. These nodes are nobody else's.
void ask_for_fewer(job_record_t& job, kept_nodes& kept, std::uint32_t nodes) {
    kept.priority = std::exchange(job.priority, first);
    ask_for(job, nodes);
}

void ask_for_all(job_record_t& job, const kept_nodes& kept) {
    if (!kept.priority) return;
    ask_for(job, job.details->max_nodes);
    // It may be held, or have another one by an operator meanwhile.
    if (job.priority == first) job.priority = *kept.priority;
}

/// Those that the job could still have, as far as the nodes go.
bitmap left_of(const kept_nodes& kept, job_record_t& job, const ctld_tables& ctld) {
    bitmap out(bit_alloc(ctld.nodes()));
    const auto fit = ctld.fit_for(job);
    for (const int node : nodes_of(kept, ctld))
        if (is_set(ctld.available_nodes(), node) && (!fit || is_set(fit.get(), node)))
            bit_set(out.get(), node);
    return out;
}

/// False: not enough of them are left.
bool settle_for_fewer(job_record_t& job, kept_nodes& kept, const ctld_tables& ctld) {
    const auto asked = request_of(job);
    if (!asked || !*asked) return false;
    const auto left = static_cast<std::uint32_t>(bit_set_count(left_of(kept, job, ctld).get()));
    if (!train::request_on((*asked)->placement, (*asked)->min_nodes, left)) return false;
    log_info(fmt::format("job {} waited {} s for all of its nodes, and goes on with the {} that it had",
                         job.job_id, for_all_s, left));
    ask_for_fewer(job, kept, left);
    queue_job_scheduler();
    return true;
}

/// Whether the job waits no more, or the nodes are kept for it no longer.
bool settle(kept_nodes& kept, const ctld_tables& ctld) {
    const auto now = std::time(nullptr);
    auto* job = find_job_record(kept.job_id);
    if (!job || !layout_fits(job) || !job->details || !IS_JOB_PENDING(job)) return true;
    const auto begin = job->details->begin_time;
    constexpr std::time_t credential_gap_s = 2;  // for which every requeued job waits (requeue.hpp)
    const bool ends = IS_JOB_COMPLETING(job) && now <= kept.since + longest_s;
    const bool put_off = job->priority == 0 || begin > now + credential_gap_s;
    if (ends || (!put_off && !IS_JOB_COMPLETING(job))) {
        if (ends || begin > now) return false;
        if (!kept.waits_since) kept.waits_since = now;
        const auto waited = now - kept.waits_since;
        if (waited < for_all_s) return false;
        if (!kept.priority && settle_for_fewer(*job, kept, ctld)) return false;
        if (kept.priority && waited < for_all_s + for_fewer_s) return false;
    }
    ask_for_all(*job, kept);
    return true;
}

/// -w, and GPUs of the whole job or of each task, which Slurm has counted for all of its nodes.
bool names_nodes_or_gpus(const job_record_t& job) {
    const auto has_gres = [](const char* tres) { return tres && std::string_view(tres).contains("gres"); };
    return job.details->req_node_bitmap || has_gres(job.tres_per_job) || has_gres(job.tres_per_task);
}

}  // namespace

void keep_nodes(const job_record_t& job) {
    const auto asked = request_of(job);
    if (!asked || !*asked || (*asked)->min_nodes == 0 || job.preempt_time != 0) return;
    // A range of nodes, or none at all, is what a site without job_submit/banyan lets through.
    if (names_nodes_or_gpus(job) || job.details->min_nodes != job.details->max_nodes) return;
    auto plan = stored_plan(job);
    if (!plan || plan->nodes.size() >= (*asked)->placement.nodes) return;
    std::erase_if(all_kept(), [&](const auto& kept) { return kept.job_id == job.job_id; });
    all_kept().push_back({job.job_id, std::move(*plan), std::time(nullptr)});
    ring();
}

bool leave_kept_nodes(const job_record_t& job, bitstr_t* candidates) {
    const auto* ctld = ctld_tables::get();
    if (all_kept().empty() || !ctld) return true;
    for (const auto& kept : all_kept()) {
        if (kept.job_id == job.job_id) continue;
        for (const int node : nodes_of(kept, *ctld)) bit_clear(candidates, node);
    }
    auto* required = job.details ? job.details->req_node_bitmap : nullptr;  // -w
    return !required || bit_super_set(required, candidates);
}

std::optional<int> start_on_kept_nodes(job_record_t& job, const job_request& asked, const ctld_tables& ctld,
                                       bitstr_t* candidates, test_mode mode, const cons_tres& inner) {
    const auto* kept = kept_for(job);
    if (!kept || !kept->priority) return std::nullopt;
    const auto nodes = left_of(*kept, job, ctld);
    if (!bit_super_set(nodes.get(), candidates)) return ESLURM_NODES_BUSY;
    bit_copybits(candidates, nodes.get());
    const int rc = inner.ask(candidates);
    if (rc == SLURM_SUCCESS && mode == test_mode::run_now)
        save_fewer(job, kept->plan, ctld, asked, candidates);
    return rc;
}

void forget_kept_nodes(job_record_t& job) {
    const auto* kept = kept_for(job);
    if (!kept) return;
    ask_for_all(job, *kept);
    std::erase_if(all_kept(), [&](const auto& one) { return one.job_id == job.job_id; });
}

void ask_for_all_nodes(job_record_t& job) {
    if (job.priority != first || kept_for(job) || !job.details) return;
    ask_for(job, job.details->max_nodes);
    set_job_prio(&job);
}

bool look_at_kept_nodes() {
    const auto* ctld = ctld_tables::get();
    if (!ctld) return false;
    std::erase_if(all_kept(), [&](auto& kept) { return settle(kept, *ctld); });
    return !all_kept().empty();
}

}  // namespace banyan::slurm
