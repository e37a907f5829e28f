// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/placement/job_placement.hpp"

#include <algorithm>
#include <ctime>

#include <banyan/topo/placement.hpp>
#include <fmt/format.h>

#include "slurmctld-plugin/fabric/fabric_cache.hpp"
#include "slurmctld-plugin/job_request.hpp"
#include "slurmctld-plugin/notice.hpp"
#include "slurmctld-plugin/placement/joined_nodes.hpp"
#include "slurmctld-plugin/placement/kept_nodes.hpp"
#include "slurmctld-plugin/placement/later_start.hpp"
#include "slurmctld-plugin/placement/node_choice.hpp"
#include "slurmctld-plugin/placement/ordered_start.hpp"
#include "slurmctld-plugin/placement/requeue.hpp"
#include "slurmctld-plugin/placement/train_job.hpp"
#include "slurmctld-plugin/plan/job_plan.hpp"
#include "slurmctld-plugin/plan/plan_builder.hpp"
#include "slurmctld-plugin/plan/published_plan.hpp"
#include "train/job_size.hpp"

namespace banyan::slurm {
namespace {

/// One call of job_test for a training job: to start it, or to say when it could.
class attempt {
  public:
    attempt(const train_job& job, const job_request& asked, bitstr_t* node_bitmap, test_mode mode,
            const cons_tres& inner)
        : job_(job),
          asked_(asked),
          nodes_(node_bitmap),
          all_(bit_copy(node_bitmap)),
          mode_(mode),
          inner_(inner) {}

    /// On the nodes that we choose, now or where --train-wait has them later; else on those of cons_tres.
    int run() {
        if (const auto now = start_at(now_, job_.free_now(all_.get()))) {
            if (const auto later = later_than(*now)) {
                if (mode_ == test_mode::run_now) return ESLURM_NODES_BUSY;
                if (granted(later->placement, later->time)) return SLURM_SUCCESS;
            }
            if (granted(now->placement, now_)) {
                if (mode_ == test_mode::run_now) save(*now);
                return SLURM_SUCCESS;
            }
        }
        return as_cons_tres_has_it();
    }

  private:
    /// What cons_tres says of the first part of the fabric that has room.
    int ask_cons_tres() {
        const int needed = static_cast<int>(train::all_nodes(job_.request));
        const auto parts = joined_nodes(job_.fabric, all_.get());
        int rc = ESLURM_NODES_BUSY;
        for (const auto& part : parts) {
            if (parts.size() > 1 && bit_set_count(part.get()) < needed) continue;
            bit_copybits(nodes_, part.get());
            rc = inner_.ask(nodes_);
            if (rc == SLURM_SUCCESS) return rc;
        }
        return rc;
    }

    int as_cons_tres_has_it() {
        const int rc = ask_cons_tres();
        if (rc == SLURM_SUCCESS && mode_ == test_mode::run_now) arrange_theirs();
        if (rc == SLURM_SUCCESS && mode_ == test_mode::will_run) plan_ahead();
        return rc;
    }

    /// The candidates of a later start: RUN_NOW names only nodes that are free.
    const bitstr_t* ever_free() {
        if (mode_ == test_mode::will_run) return all_.get();
        if (!fit_) fit_ = job_.ctld.fit_for(job_.record);
        return fit_.get();
    }

    std::optional<first_start> start_at(std::time_t time, std::vector<std::uint32_t> free) const {
        auto placement = choose_nodes(job_, free);
        if (!placement) return std::nullopt;
        return first_start{time, std::move(free), std::move(*placement)};
    }

    std::optional<later_start> later_than(const first_start& first) {
        const auto minutes = job_.options.wait_minutes;
        if (minutes == 0) return std::nullopt;
        return worth_waiting(job_, ever_free(), first, std::time_t{minutes} * 60);
    }

    /// Whether cons_tres takes exactly these nodes, and not later than `by`. They are then in nodes_.
    bool granted(const topo::placement& placement, std::time_t by) {
        return taken(placement, inner_.ask) &&
               (mode_ != test_mode::will_run || job_.record.start_time <= std::max(by, std::time(nullptr)));
    }

    bool taken(const topo::placement& placement, const std::function<int(bitstr_t*)>& ask) {
        const bitmap chosen(bit_alloc(bit_size(nodes_)));
        for (const auto& hosts : {placement.nodes, placement.spares})
            for (const auto host : hosts) bit_set(chosen.get(), job_.fabric.map.node_of(host));
        const auto* required = job_.record.details->req_node_bitmap;  // -w
        if (required && !bit_super_set(const_cast<bitstr_t*>(required), chosen.get())) return false;
        bit_copybits(nodes_, chosen.get());
        return ask(nodes_) == SLURM_SUCCESS && bit_equal(nodes_, chosen.get());
    }

    /// cons_tres found a start in the future, with nodes of its own choice: those where the job would be
    /// placed then take their place, so that backfill keeps them free. By the same time, or with --train-wait
    /// a better place by then.
    void plan_ahead() {
        const auto start = job_.record.start_time;
        // Asked twice, cons_tres would list the jobs to preempt twice.
        if (start <= now_ || inner_.may_preempt) return;
        const bitmap theirs(bit_copy(nodes_));
        const auto then = start_at(start, job_.free_at(all_.get(), start));
        if (!then) return;
        if (const auto later = later_than(*then))
            if (granted(later->placement, later->time)) return;
        // Free they are; whether they have what the job asks for is all that is left to say.
        if (!taken(then->placement, inner_.ask_if_idle)) bit_copybits(nodes_, theirs.get());
        job_.record.start_time = start;
    }

    /// The ranks of a job that starts now on nodes which cons_tres chose.
    void arrange_theirs() {
        auto hosts = job_.fabric.map.known_hosts_of(set_bits(nodes_));
        const bool known = hosts.size() == job_.request.nodes + job_.request.spares;
        const auto placement = known
                                   ? topo::place(job_.fabric.fabric, hosts, job_.request)
                                   : fail(errc::not_found, "not all of its nodes are in the fabric snapshot");
        if (placement) return save({now_, std::move(hosts), *placement});
        log_job_once(job_.record.job_id, placement.error().text() + "; its ranks are in Slurm's order");
        save_in_order(job_.record, stored_plan(job_.record), job_.ctld, asked_, nodes_,
                      known ? "not-placed" : "nodes-not-in-snapshot");
    }

    void save(const first_start& start) {
        save_placement(job_.record, stored_plan(job_.record), job_.fabric, job_.ctld, job_.request,
                       start.placement, gain_of_waiting(job_, ever_free(), start));
    }

    const train_job& job_;
    const job_request& asked_;
    bitstr_t* nodes_;
    bitmap all_;  ///< the candidates that slurmctld gave
    bitmap fit_;  ///< of ever_free
    test_mode mode_;
    const cons_tres& inner_;
    std::time_t now_ = std::time(nullptr);
};

}  // namespace

int place_job(job_record_t& job, bitstr_t* node_bitmap, test_mode mode, const cons_tres& inner) {
    const auto as_cons_tres = [&] {
        const int rc = inner.ask(node_bitmap);
        // What was told of an earlier run would be believed of this one.
        if (rc == SLURM_SUCCESS && mode == test_mode::run_now) retract_plan(job);
        return rc;
    };
    const auto request = request_of(job);
    if (!request) {
        log_job_once(job.job_id, fmt::format("{}; placed as by plain cons_tres", request.error().text()));
        return as_cons_tres();
    }
    if (*request && leave_step_manager(job))
        log_job_once(job.job_id,
                     "its steps are slurmctld's own: a step manager is not told of a node that is lost");
    const auto* ctld = ctld_tables::get();
    if (!*request || !ctld || mode == test_mode::test_only) return as_cons_tres();
    // Backfill, which only asks, keeps the nodes for it meanwhile.
    if (mode == test_mode::run_now && ended_just_now(job)) return ESLURM_NODES_BUSY;
    if (const auto fewer = start_on_kept_nodes(job, **request, *ctld, node_bitmap, mode, inner))
        return *fewer;
    // A part of a job, which counts its nodes by features.
    if (inner.min_nodes != train::all_nodes((*request)->placement)) return as_cons_tres();
    const auto* fabric = fabric_cache::instance().get(*ctld);
    if (!fabric) return start_in_order(job, **request, *ctld, node_bitmap, mode, inner);
    const train_job train{job, (*request)->options, (*request)->placement, *fabric, *ctld};
    if (wait_for_shards(train)) return ESLURM_NODES_BUSY;
    return attempt(train, **request, node_bitmap, mode, inner).run();
}

}  // namespace banyan::slurm
