// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/plan/plan_builder.hpp"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/notice.hpp"
#include "slurmctld-plugin/plan/job_plan.hpp"
#include "slurmctld-plugin/plan/published_plan.hpp"
#include "train/admin_comment.hpp"
#include "train/min_dp.hpp"
#include "train/plan_in_order.hpp"

namespace banyan::slurm {
namespace {

std::vector<std::string> names_of(const std::vector<std::uint32_t>& hosts, const topo::fabric& fabric) {
    std::vector<std::string> names;
    for (const auto host : hosts) names.push_back(fabric.hosts[host].name);
    return names;
}

/// Every other node of the job waits as a spare, behind those that the plan has: one that its step leaves
/// out, one that the fabric lacks, and all of them where the job had no plan.
void add_others(train::plan& plan, const job_record_t& job, const ctld_tables& ctld) {
    const job_record_t* started = &job;
    if (!job.node_bitmap || IS_JOB_PENDING(started))
        return;  // what it may still have are nodes of its last run
    std::unordered_set<std::string> known(plan.nodes.begin(), plan.nodes.end());
    known.insert(plan.spares.begin(), plan.spares.end());
    for (const int node : set_bits(job.node_bitmap))
        if (known.insert(ctld.node(node)->name).second) plan.spares.emplace_back(ctld.node(node)->name);
}

/// The plan is for these nodes, and the job's others.
void store_for_nodes(job_record_t& job, const ctld_tables& ctld, train::plan plan) {
    add_others(plan, job, ctld);
    plan.addrs = ctld.addresses_of(plan.nodes);
    plan.spare_addrs = ctld.addresses_of(plan.spares);
    plan.former_addrs = ctld.addresses_of(plan.former);
    store_plan(job, std::move(plan));
}

}  // namespace

void save_placement(job_record_t& job, const std::optional<train::plan>& before,
                    const fabric_cache::view& fabric, const ctld_tables& ctld, const topo::request& request,
                    const topo::placement& placement, std::optional<train::better_later> later) {
    train::plan plan;
    if (before && before->restart == job.restart_cnt) {
        if (!later) later = before->later;
        plan.supervised = before->supervised;
    }
    plan.generation = before ? before->generation + 1 : 1;
    plan.restart = job.restart_cnt;
    plan.shape = request.dims.text();
    plan.ranks_per_node = request.ranks_per_node;
    plan.launchers = request.launchers;
    if (const auto asked = request_of(job); asked && *asked) plan.min_nodes = (*asked)->min_nodes;
    plan.buddies = placement.buddies;
    plan.model = request.model;
    plan.later = later;
    plan.spread =
        train::spread_in_words(request, topo::spread_of(fabric.fabric, request, placement, fabric.kind));
    plan.nodes = names_of(placement.nodes, fabric.fabric);
    plan.spares = names_of(placement.spares, fabric.fabric);
    if (before) plan.former = train::former_after(*before, plan);
    store_for_nodes(job, ctld, std::move(plan));
}

void save_in_order(job_record_t& job, const std::optional<train::plan>& before, const ctld_tables& ctld,
                   const job_request& asked, const bitstr_t* nodes, std::string_view why) {
    std::vector<std::string> names;
    for (const int node : set_bits(nodes)) names.emplace_back(ctld.node(node)->name);
    auto plan = train::plan_in_order(asked.placement, names, before ? &*before : nullptr);
    if (!plan) {
        log_job_once(job.job_id, plan.error().text() + "; its ranks stay in Slurm's order");
        return retract_plan(job);
    }
    plan->generation = before ? before->generation + 1 : 1;
    plan->restart = job.restart_cnt;
    plan->min_nodes = asked.min_nodes;
    plan->spread += fmt::format("({})", why);
    if (before) plan->former = train::former_after(*before, *plan);
    store_for_nodes(job, ctld, std::move(*plan));
}

void save_fewer(job_record_t& job, const train::plan& before, const ctld_tables& ctld,
                const job_request& asked, const bitstr_t* nodes) {
    std::vector<std::string> names;
    for (const auto* some : {&before.nodes, &before.spares})
        for (const auto& name : *some)
            if (const int node = ctld.find_node(name); node >= 0 && is_set(nodes, node))
                names.push_back(name);
    const auto now =
        train::request_on(asked.placement, asked.min_nodes, static_cast<std::uint32_t>(names.size()));
    if (!now) return retract_plan(job);
    const auto last = stored_plan(job);
    auto plan = before;
    plan.generation = std::max(plan.generation, last ? last->generation : 0) + 1;
    plan.restart = job.restart_cnt;
    plan.supervised = false;
    plan.later.reset();
    plan.spread.clear();  // that of other nodes
    plan.spares.assign(names.begin() + now->nodes, names.end());
    names.resize(now->nodes);
    plan.nodes = train::keep_nodes(before.nodes, names);
    plan.former = train::former_after(before, plan);
    store_for_nodes(job, ctld, std::move(plan));
}

void save_nodes(job_record_t& job, const ctld_tables& ctld, train::plan plan,
                const std::vector<std::string>& nodes) {
    if (plan.nodes == nodes) return;
    plan.nodes = nodes;
    const std::unordered_set<std::string> used(nodes.begin(), nodes.end());
    std::erase_if(plan.spares, [&](const auto& name) { return used.contains(name); });
    ++plan.generation;
    plan.spread.clear();  // that of other nodes
    store_for_nodes(job, ctld, std::move(plan));
}

void note_supervised(job_record_t& job, bool supervised) {
    auto plan = stored_plan(job);
    if (!plan || plan->restart != job.restart_cnt || plan->supervised == supervised) return;
    plan->supervised = supervised;
    store_plan(job, std::move(*plan));
}

void forget_spare(job_record_t& job, const node_record_t& node) {
    auto plan = stored_plan(job);
    if (!plan) return;
    const auto at = std::find(plan->spares.begin(), plan->spares.end(), node.name);
    if (at == plan->spares.end()) return;  // as most nodes that leave a job
    if (!plan->spare_addrs.empty())
        plan->spare_addrs.erase(plan->spare_addrs.begin() + (at - plan->spares.begin()));
    plan->spares.erase(at);
    ++plan->generation;
    store_plan(job, std::move(*plan));
}

}  // namespace banyan::slurm
