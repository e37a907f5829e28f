// SPDX-License-Identifier: BSD-3-Clause
//
// A cluster in memory, for tests of the controller's order of actions only. What real Slurm does is tested on
// a real one.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "common/clock.hpp"
#include "fault/slurm/cluster.hpp"

namespace banyan::fault::testing {

struct fake_state {
    std::mutex lock;  // guards all of it: the controller calls from its pool
    std::map<std::string, node_status> nodes;
    std::map<std::uint32_t, job_status> jobs;
    std::map<std::uint32_t, result<std::optional<std::uint32_t>>> needed;  // by job
    std::map<std::uint32_t, std::vector<step_status>> steps;               // by job
    bool without_banyan_run = false;                                       // every job is
    std::map<std::uint32_t, result<node_ranks>> ranks;  // by job, on any node while the job has it
    bool jobs_unknown = false;                          // on any node
    int listed = 0;                                     // how often all were
    int unanswered = 0;                                 // of questions for that
    std::string told;                                   // the last that a user was
    std::vector<std::string> holding;                   // do not end a job's last run
    std::vector<std::string> silent, unreachable;       // as to that
    std::vector<std::string> asked;                     // about it
    std::function<void()> when_requeued;                // with the lock held
    std::function<void()> when_asked;                   // with the lock held
    std::function<void(std::uint32_t)> when_ended;      // a step, by its number; with the lock held
    std::function<void()> when_needed;                  // nodes_needed is asked, with the lock held
    std::function<void()> after_job;                    // it was looked at, with the lock held
    // A node's jobs are asked for, it is asked about, it goes out; without the lock.
    std::function<void()> when_jobs, when_node, when_set;
    int tell_fails = 0, requeue_fails = 0;      // so many times
    bool away = false;                          // nothing is told of any job
    std::function<void()> when_drained;         // with the lock held
    std::function<void()> when_asked_for_jobs;  // those of a node, in vain; with the lock held
    std::string refuse_node;                    // every change of it
    int refused = 0;                            // changes of a node
    std::string only;                // what is done of the next set_down, "drain" or "down", before it fails
    std::vector<std::string> calls;  // what was changed
};

class fake_cluster final : public cluster {
  public:
    explicit fake_cluster(fake_state& s) : s_(s) {}

    result<std::uint32_t> node_count() override { return static_cast<std::uint32_t>(s_.nodes.size()); }
    result<node_status> node(const std::string& name) override {
        if (s_.when_node) s_.when_node();
        const std::lock_guard hold(s_.lock);
        return s_.nodes[name];
    }
    result<std::vector<job_status>> running_jobs() override {
        const std::lock_guard hold(s_.lock);
        ++s_.listed;
        if (s_.jobs_unknown) return fail(errc::unavailable, "slurmctld does not answer");
        std::vector<job_status> out;
        for (const auto& [id, job] : s_.jobs)
            if (job.phase == job_phase::running) out.push_back(job);
        return out;
    }
    result<std::vector<job_status>> jobs_on(const std::string& node) override {
        if (s_.when_jobs) s_.when_jobs();
        const std::lock_guard hold(s_.lock);
        if (s_.jobs_unknown) {
            if (s_.when_asked_for_jobs) s_.when_asked_for_jobs();
            return fail(errc::unavailable, "slurmctld does not answer");
        }
        std::vector<job_status> out;
        for (const auto& [id, job] : s_.jobs)
            if (job.phase == job_phase::running && std::ranges::find(job.nodes, node) != job.nodes.end())
                out.push_back(job);
        return out;
    }
    result<job_status> job(std::uint32_t id) override {
        const std::lock_guard hold(s_.lock);
        if (s_.away) return fail(errc::unavailable, "slurmctld does not answer");
        auto out = s_.jobs[id];
        if (s_.after_job) s_.after_job();
        return out;
    }
    result<std::vector<step_status>> steps(std::uint32_t job) override {
        const std::lock_guard hold(s_.lock);
        return s_.steps[job];
    }
    result<left_behind> processes(std::uint32_t, const step_status&, const std::string& node) override {
        const std::lock_guard hold(s_.lock);
        s_.asked.push_back(node);
        const auto has = [&](const auto& nodes) { return std::ranges::find(nodes, node) != nodes.end(); };
        if (has(s_.unreachable)) return fail(errc::unavailable, node + " could not be looked at");
        if (s_.when_asked) s_.when_asked();
        if (s_.nodes[node].down) return left_behind::none;
        return has(s_.silent)    ? left_behind::no_answer
               : has(s_.holding) ? left_behind::some
                                 : left_behind::none;
    }
    result<std::optional<std::uint32_t>> nodes_needed(const job_status& job) override {
        const std::lock_guard hold(s_.lock);
        if (s_.unanswered > 0) {
            --s_.unanswered;
            return fail(errc::unavailable, "slurmctld is busy");
        }
        if (s_.when_needed) s_.when_needed();
        return s_.needed[job.id];
    }
    result<bool> starts_again(const job_status&) override {
        const std::lock_guard hold(s_.lock);
        return !s_.without_banyan_run;
    }
    result<node_ranks> ranks_on(const job_status& job, const std::string& node) override {
        const std::lock_guard hold(s_.lock);
        const auto& nodes = s_.jobs[job.id].nodes;
        if (std::ranges::find(nodes, node) == nodes.end())
            return fail(errc::not_found, "the job has left the node");
        const auto found = s_.ranks.find(job.id);
        if (found != s_.ranks.end()) return found->second;
        return fail(errc::not_found, "no training step runs there");
    }
    result<void> set_down(const std::string& node, const std::string& reason) override {
        const std::lock_guard hold(s_.lock);
        if (s_.refused > 0 || node == s_.refuse_node) {
            --s_.refused;
            return fail(errc::unavailable, "slurmctld is away");
        }
        const auto only = std::exchange(s_.only, {});
        s_.calls.push_back((only.empty() ? "down " : only + " only ") + node);
        auto& n = s_.nodes[node];
        n.down |= only != "drain";
        n.drained |= only != "down";
        n.reason = reason;
        if (n.down) leaves(node);
        if (!only.empty()) return fail(errc::unavailable, "slurmctld is away");
        return {};
    }
    result<void> set_lost(const std::string& node, const std::string& reason) override {
        const std::lock_guard hold(s_.lock);
        s_.calls.push_back("lost " + node);
        s_.nodes[node].down = true;
        s_.nodes[node].reason = reason;
        leaves(node);
        return {};
    }
    result<void> set_drain(const std::string& node, const std::string& reason) override {
        if (s_.when_set) s_.when_set();
        const std::lock_guard hold(s_.lock);
        if (node == s_.refuse_node) return fail(errc::unavailable, "slurmctld is away");
        s_.calls.push_back("drain " + node);
        if (s_.when_drained) s_.when_drained();
        s_.nodes[node].drained = true;
        s_.nodes[node].reason = reason;
        return {};
    }
    result<void> release(const std::string& node) override {
        const std::lock_guard hold(s_.lock);
        s_.calls.push_back("release " + node);
        s_.nodes[node].down = true;
        leaves(node);
        return {};
    }
    result<void> resume(const std::string& node) override {
        const std::lock_guard hold(s_.lock);
        s_.calls.push_back("resume " + node);
        s_.nodes[node] = {node, false, false, ""};
        return {};
    }
    result<void> end_step(std::uint32_t job, std::uint32_t step) override {
        const std::lock_guard hold(s_.lock);
        if (s_.refused > 0) {
            --s_.refused;
            return fail(errc::unavailable, "slurmctld is away");
        }
        s_.calls.push_back("end " + std::to_string(job) + "." + std::to_string(step));
        if (s_.when_ended) s_.when_ended(step);
        return {};
    }
    result<void> requeue(std::uint32_t job) override {
        const std::lock_guard hold(s_.lock);
        if (s_.requeue_fails > 0) {
            --s_.requeue_fails;
            return fail(errc::unavailable, "slurmctld is busy");
        }
        if (s_.when_requeued) s_.when_requeued();
        s_.calls.push_back("requeue " + std::to_string(job));
        s_.jobs[job].phase = s_.holding.empty() ? job_phase::pending : job_phase::completing;
        s_.jobs[job].nodes = s_.holding;
        s_.jobs[job].start_time = s_.jobs[job].begin_time = clock::wall_ms() / 1000 + 121;
        return {};
    }
    result<void> tell(std::uint32_t job, const std::string& text) override {
        const std::lock_guard hold(s_.lock);
        if (s_.tell_fails > 0) {
            --s_.tell_fails;
            return fail(errc::unavailable, "slurmctld is away");
        }
        s_.calls.push_back("tell " + std::to_string(job));
        s_.told = text;
        return {};
    }
    result<void> start_now(std::uint32_t job) override {
        const std::lock_guard hold(s_.lock);
        s_.calls.push_back("start " + std::to_string(job));
        auto& j = s_.jobs[job];
        j.phase = job_phase::running;
        j.start_time = clock::wall_ms() / 1000;
        ++j.restarts;
        s_.steps[job].clear();
        return {};
    }

  private:
    void leaves(const std::string& node) {
        for (auto& [id, job] : s_.jobs) {
            std::erase(job.nodes, node);
            if (job.phase == job_phase::completing && job.nodes.empty()) job.phase = job_phase::pending;
        }
    }

    fake_state& s_;
};

}  // namespace banyan::fault::testing
