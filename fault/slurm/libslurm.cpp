// SPDX-License-Identifier: BSD-3-Clause
//
// The cluster interface over libslurm's public calls.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "common/text.hpp"
#include "fault/slurm/cluster.hpp"
#include "fault/slurm/processes_left.hpp"
#include "fault/slurm/step_ranks.hpp"
#include "train/slurm/job_words.hpp"
#include "train/slurm/plan_query.hpp"
#include "train/supervised.hpp"

namespace banyan::fault {
namespace {

std::string text_of(const char* text) { return text ? text : ""; }

/// Where libslurm looks that is not told: Slurm's own place, by how it was built, then the copy that a node
/// without a slurm.conf got from slurmctld.
constexpr const char* conf_places[] = {"/etc/slurm/slurm.conf", BANYAN_SLURM_ETC "/slurm.conf",
                                       "/run/slurm/conf/slurm.conf"};

/// The slurm.conf that libslurm would miss; none where it finds one.
std::optional<std::string> missing_conf() {
    std::error_code ignored;
    const auto there = [&](const char* path) { return std::filesystem::is_regular_file(path, ignored); };
    if (const char* named = std::getenv("SLURM_CONF"); named && *named)
        return there(named) ? std::nullopt : std::optional<std::string>(named);
    if (std::ranges::any_of(conf_places, there)) return {};
    return conf_places[0];
}

std::unexpected<error> slurm_failed(const std::string& doing) {
    const int err = libslurm::last_error();
    return fail(err == ESLURM_INVALID_JOB_ID ? errc::not_found : errc::unavailable,
                fmt::format("{}: {}", doing, slurm_strerror(err)));
}

/// Of a node that Slurm restarts, switches off or on, or that has no power.
constexpr std::uint32_t unattended =
    NODE_STATE_REBOOT_ISSUED | NODE_STATE_POWERING_DOWN | NODE_STATE_POWERED_DOWN | NODE_STATE_POWERING_UP;

bool is_busy(std::uint32_t state) {
    const auto base = state & NODE_STATE_BASE;
    return base == NODE_STATE_ALLOCATED || base == NODE_STATE_MIXED || (state & NODE_STATE_COMPLETING) != 0;
}

/// In Slurm's own words. A priority of 0 is how Slurm holds a job.
std::string held_words(const slurm_job_info_t& j) {
    if (j.priority != 0) return {};
    if (j.state_desc && *j.state_desc) return printable(j.state_desc);
    return j.state_reason == WAIT_HELD_USER ? "JobHeldUser" : "JobHeldAdmin";
}

job_status status_of(const slurm_job_info_t& j) {
    job_status out;
    out.id = j.job_id;
    const auto base = j.job_state & JOB_STATE_BASE;
    if (j.job_state & JOB_COMPLETING)
        out.phase = job_phase::completing;
    else if (base == JOB_PENDING)
        out.phase = job_phase::pending;
    else if (base == JOB_RUNNING || base == JOB_SUSPENDED)
        out.phase = job_phase::running;
    if (out.phase == job_phase::running || out.phase == job_phase::completing)
        if (auto names = expand_hostlist(text_of(j.nodes))) out.nodes = std::move(*names);
    out.batch_host = text_of(j.batch_host);
    out.may_requeue = j.requeue != 0;
    out.restarts = j.restart_cnt;
    out.start_time = j.start_time;
    out.begin_time = j.eligible_time;
    out.exclusive = j.shared == JOB_SHARED_NONE;
    if (out.phase == job_phase::pending) out.held = held_words(j);
    if (out.phase == job_phase::ended) out.end = train::end_in_words(j.job_state, j.exit_code);
    return out;
}

class slurm_cluster final : public cluster {
  public:
    result<std::uint32_t> node_count() override {
        BANYAN_CHECK(ready());
        node_info_msg_t* answer = nullptr;
        if (slurm_load_node(0, &answer, SHOW_ALL) != SLURM_SUCCESS)
            return slurm_failed("cannot list the nodes");
        const auto count = answer->record_count;
        slurm_free_node_info_msg(answer);
        return count;
    }

    result<node_status> node(const std::string& name) override {
        BANYAN_CHECK(ready());
        node_info_msg_t* answer = nullptr;
        auto asked = name;
        if (slurm_load_node_single(&answer, asked.data(), SHOW_ALL) != SLURM_SUCCESS)
            return slurm_failed("cannot read node " + name);
        const std::unique_ptr<node_info_msg_t, void (*)(node_info_msg_t*)> owner(answer,
                                                                                 slurm_free_node_info_msg);
        for (std::uint32_t i = 0; i < answer->record_count; ++i) {
            const auto& n = answer->node_array[i];
            if (!n.name || name != n.name) continue;
            node_status out;
            out.name = name;
            out.down = (n.node_state & NODE_STATE_BASE) == NODE_STATE_DOWN;
            out.drained = (n.node_state & NODE_STATE_DRAIN) != 0;
            out.reason = text_of(n.reason);
            out.planned = (n.node_state & unattended) != 0;
            out.address = text_of(n.node_addr);
            out.port = n.port;
            out.busy = is_busy(n.node_state);
            out.boot_time = n.boot_time;
            return out;
        }
        return fail(errc::not_found, fmt::format("Slurm has no node {}", name));
    }

    result<std::vector<job_status>> running_jobs() override {
        BANYAN_CHECK(ready());
        job_info_msg_t* answer = nullptr;
        if (slurm_load_jobs(0, &answer, SHOW_ALL) != SLURM_SUCCESS)
            return slurm_failed("cannot list the jobs");
        const std::unique_ptr<job_info_msg_t, void (*)(job_info_msg_t*)> owner(answer,
                                                                               slurm_free_job_info_msg);
        std::vector<job_status> out;
        for (std::uint32_t i = 0; i < answer->record_count; ++i) {
            auto job = status_of(answer->job_array[i]);
            if (job.phase == job_phase::running) out.push_back(std::move(job));
        }
        return out;
    }

    result<std::vector<job_status>> jobs_on(const std::string& node) override {
        BANYAN_TRY(auto out, running_jobs());
        std::erase_if(out, [&node](const job_status& job) {
            return std::ranges::find(job.nodes, node) == job.nodes.end();
        });
        return out;
    }

    result<job_status> job(std::uint32_t id) override {
        BANYAN_CHECK(ready());
        job_info_msg_t* answer = nullptr;
        if (libslurm::load_job(&answer, id) != SLURM_SUCCESS)
            return slurm_failed(fmt::format("cannot read job {}", id));
        const std::unique_ptr<job_info_msg_t, void (*)(job_info_msg_t*)> owner(answer,
                                                                               slurm_free_job_info_msg);
        if (answer->record_count == 0) return fail(errc::not_found, fmt::format("Slurm has no job {}", id));
        return status_of(answer->job_array[0]);
    }

    result<std::vector<step_status>> steps(std::uint32_t job) override {
        BANYAN_CHECK(ready());
        job_step_info_response_msg_t* answer = nullptr;
        if (libslurm::load_steps(&answer, job) != SLURM_SUCCESS)
            return slurm_failed(fmt::format("cannot read the steps of job {}", job));
        const std::unique_ptr<job_step_info_response_msg_t, void (*)(job_step_info_response_msg_t*)> owner(
            answer, slurm_free_job_step_info_response_msg);
        std::vector<step_status> out;
        for (std::uint32_t i = 0; i < answer->job_step_count; ++i) {
            const auto& step = answer->job_steps[i];
            if (step.step_id.step_id >= SLURM_MAX_NORMAL_STEP_ID ||
                (step.state & JOB_STATE_BASE) != JOB_RUNNING)
                continue;
            auto names = expand_hostlist(text_of(step.nodes));
            if (names)
                out.push_back({step.step_id.step_id, std::move(*names), step.step_id.step_het_comp,
                               step.start_time, train::starts_again(text_of(step.submit_line))});
        }
        return out;
    }

    result<left_behind> processes(std::uint32_t job, const step_status& step,
                                  const std::string& node) override {
        BANYAN_TRY(const auto where, this->node(node));
        return processes_left(libslurm::step_id(job, step.id, step.component), where);
    }

    result<std::optional<std::uint32_t>> nodes_needed(const job_status& job) override {
        BANYAN_CHECK(ready());
        BANYAN_TRY(const auto plan, train::query_plan(job.id, job.restarts));
        if (!plan) return std::nullopt;
        return plan->min_nodes ? plan->min_nodes : plan->nodes;
    }

    result<bool> starts_again(const job_status& job) override {
        BANYAN_CHECK(ready());
        BANYAN_TRY(const auto plan, train::query_plan(job.id, job.restarts));
        if (!plan || plan->supervised) return true;
        // The plan says so once a node has left the job.
        BANYAN_TRY(const auto running, steps(job.id));
        return std::ranges::any_of(running, &step_status::starts_again);
    }

    result<node_ranks> ranks_on(const job_status& job, const std::string& node) override {
        BANYAN_CHECK(ready());
        BANYAN_TRY(const auto plan, train::query_plan(job.id, job.restarts));
        if (!plan) return fail(errc::not_found, fmt::format("job {} was placed without a plan", job.id));
        BANYAN_TRY(const auto running, steps(job.id));
        result<node_ranks> out =
            fail(errc::not_found, fmt::format("no training step of job {} runs on {}", job.id, node));
        for (const auto& step : running) {
            if (std::ranges::find(step.nodes, node) == step.nodes.end()) continue;
            auto found = ranks_in(job.id, step, *plan, node);
            if (!found && found.error().code == errc::not_found) continue;
            if (found && out)
                return fail(errc::conflict,
                            fmt::format("job {} runs two steps that may be its training", job.id));
            out = std::move(found);
            if (!out) return out;
            out->start_time = step.start_time;
        }
        return out;
    }

    result<void> set_down(const std::string& node, const std::string& reason) override {
        // DOWN frees the jobs at once. With ReturnToService=2 a node whose slurmd still answers would be back
        // in a moment: DRAIN keeps it out. It comes first, and stays: where the second call fails the node
        // is drained, and is set DOWN by the next try.
        BANYAN_CHECK(update(node, NODE_STATE_DRAIN, reason));
        return update(node, NODE_STATE_DOWN, reason);
    }
    result<void> set_lost(const std::string& node, const std::string& reason) override {
        return update(node, NODE_STATE_DOWN, reason);
    }
    result<void> set_drain(const std::string& node, const std::string& reason) override {
        return update(node, NODE_STATE_DRAIN, reason);
    }
    result<void> release(const std::string& node) override { return set_down(node, {}); }
    result<void> resume(const std::string& name) override {
        const auto resumed = update(name, NODE_RESUME, {});
        if (resumed) return {};
        // Of a node that has not registered yet with a slurmctld that was started again, that clears DRAIN,
        // and then finds that the state that is left is none.
        const auto is = node(name);
        return is && !is->drained && !is->down ? result<void>{} : resumed;
    }

    result<void> end_step(std::uint32_t job, std::uint32_t step) override {
        BANYAN_CHECK(ready());
        // A task that hangs takes no other signal, and one that takes it may say that all went well.
        if (libslurm::kill_step(job, step, SIGKILL) == SLURM_SUCCESS) return {};
        const int err = libslurm::last_error();
        if (err == ESLURM_ALREADY_DONE || err == ESLURM_INVALID_JOB_ID || err == ESLURM_JOB_PENDING)
            return {};
        return slurm_failed(fmt::format("cannot end step {}.{}", job, step));
    }

    result<void> requeue(std::uint32_t job) override {
        BANYAN_CHECK(ready());
        if (libslurm::requeue(job) != SLURM_SUCCESS && libslurm::last_error() != ESLURM_JOB_PENDING)
            return slurm_failed(fmt::format("cannot requeue job {}", job));
        return {};
    }

    result<void> tell(std::uint32_t job, const std::string& text) override {
        BANYAN_CHECK(ready());
        auto message = text;
        if (libslurm::notify_job(job, message.data()) != SLURM_SUCCESS)
            return slurm_failed(fmt::format("cannot tell the user of job {}", job));
        return {};
    }

    result<void> start_now(std::uint32_t job) override {
        BANYAN_CHECK(ready());
        job_desc_msg_t change;
        slurm_init_job_desc_msg(&change);
        libslurm::name_job(change, job);
        change.begin_time = std::time(nullptr);
        if (slurm_update_job(&change) != SLURM_SUCCESS)
            return slurm_failed(fmt::format("cannot set the start time of job {}", job));
        return {};
    }

  private:
    // libslurm ends the process when there is no slurm.conf: look first.
    result<void> ready() {
        const std::lock_guard hold(starting_);
        if (started_) return {};
        if (const auto missing = missing_conf())
            return fail(errc::unavailable, fmt::format("there is no {}: Slurm cannot be reached", *missing),
                        "set SLURM_CONF");
        slurm_init(nullptr);
        started_ = true;
        return {};
    }

    result<void> update(const std::string& node, std::uint32_t state, std::string reason) {
        BANYAN_CHECK(ready());
        auto name = node;
        update_node_msg_t change;
        slurm_init_update_node_msg(&change);
        change.node_names = name.data();
        change.node_state = state;
        if (!reason.empty()) libslurm::set_reason(change, reason.data());
        if (slurm_update_node(&change) != SLURM_SUCCESS)
            return slurm_failed("cannot change the state of node " + node);
        return {};
    }

    std::mutex starting_;  // guards started_: slurm_init must run once
    bool started_ = false;
};

}  // namespace

std::unique_ptr<cluster> make_slurm_cluster() { return std::make_unique<slurm_cluster>(); }

}  // namespace banyan::fault
