// SPDX-License-Identifier: BSD-3-Clause
//
// The loop. Between the end of one srun and the start of the next lie one question to slurmctld and one to
// the local checkpoint daemon, nothing else.
#include "supervisor/supervisor.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.hpp"
#include "supervisor/progress.hpp"
#include "supervisor/step_output.hpp"
#include "train/srun_code.hpp"

namespace banyan::supervisor {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds first_pause{100}, longest_pause{2000};
// How soon we look at what the step does, and how seldom later on.
constexpr milliseconds soon_again{100}, now_and_then{2000};
// srun forgets a SIGTERM that comes before it launches.
constexpr std::chrono::seconds until_told_again{10};

std::string node_of_this_host() {
    const char* name = std::getenv("SLURMD_NODENAME");
    return name ? name : "";
}

/// Of its own, as srun is told (run).
int code_of_srun_errors() {
    const char* wanted = std::getenv(train::srun_error_variable);
    return static_cast<int>(parse_number(wanted ? wanted : "", 255).value_or(1));
}

}  // namespace

supervisor::supervisor(options opts, std::uint32_t job, job_state first, job_plan plan)
    : opts_(std::move(opts)),
      job_(job),
      plan_(std::move(plan)),
      socket_(plan_.nodes ? checkpoint_socket(node_of_this_host()) : ""),
      began_whole_(first.nodes.size() >= plan_.nodes),
      nodes_(std::move(first.nodes)),
      unused_(plan_.spares),
      recovery_(clock::now(), newest_saved(socket_, job_)) {
    if (plan_.asked)
        say(
            fmt::format("Slurm chose the nodes, and the ranks follow their order: {}{}; no fabric "
                        "was looked at: banyan-topo explain {} --shape={} --spares={} says what banyan's own "
                        "placement would save",
                        compress_hostlist(plan_.told.before),
                        plan_.spares.empty() ? "" : "; to spare: " + compress_hostlist(plan_.spares), job_,
                        plan_.asked->parallel->text(), plan_.asked->spares));
    if (plan_.nodes)
        detail(fmt::format("the plan has {} ranks on {} nodes, {} spare", plan_.ranks, plan_.nodes,
                           plan_.spares.size()));
    else
        detail("the job has no banyan plan: running srun as given");
}

int supervisor::run() {
    if (!std::getenv(train::srun_error_variable)) {
        ::setenv(train::srun_error_variable, std::to_string(train::srun_error_code).c_str(), 1);
        ::setenv(train::srun_error_is_ours, "1", 1);
    }
    for (;;) {
        const auto end = run_step();
        if (!end) {
            say(end.error().text());
            return end.error().code == errc::not_found ? 127 : 126;
        }
        if (end->code == 0) return 0;
        auto s = look(*end);
        auto d = decide(s);
        if (d.what == action::requeue) d = requeue(s, d);
        if (d.what == action::wait) d = wait_for_slurmctld(s, d);
        if (d.what == action::again && ask_again(s)) continue;
        if (d.what != action::restart) return finish(s, d);
        restart(s, d);
    }
}

result<step_end> supervisor::run_step() {
    follow_losses(plan_, nodes_);
    correct_environment(nodes_, plan_.component);
    const auto words = srun_words(plan_on(plan_, nodes_.size()), nodes_, opts_.srun, recovery_.runs());
    detail(fmt::format("running {}", fmt::join(words, " ")));
    step_.reset();
    overdue_ = left_ = false;
    departure_ = {};
    full_size_ = {};
    hang_.reset();
    failure_ = {};
    if (plan_.nodes) output_.begin(clock::now());
    auto end = run_child(words, signals_, [this](pid_t srun) { return look_at_step(srun); });
    // An option that it does not know ends it with -1 all the same.
    constexpr int wrong_option = 255;
    own_error_ = end && !step_ &&
                 (end->code == code_of_srun_errors() || (end->code == wrong_option && !recovery_.runs()));
    if (own_error_ && end->code == train::srun_error_code) end->code = 1;  // as without us
    if (end && end->code != 0 && !overdue_ && !left_) failure_ = look_at_output();
    return end;
}

failure supervisor::look_at_output() const {
    step_output told(plan_.tasks != plan_.ranks);
    const auto take = [&](std::string_view bytes, clock::time_point when) { told.take(bytes, when); };
    return output_.read(clock::now(), take) ? told.end() : failure{};
}

milliseconds supervisor::look_at_step(pid_t srun) {
    output_.mark(clock::now());
    if (!step_) {
        const auto step = query_step(job_, srun);
        // It may wait for hours, and slurmctld answers many.
        if (!step)
            return recovery_.stood(clock::now()) < std::chrono::seconds(10) ? soon_again : now_and_then;
        step_ = step->step;
        unused_ = lost_nodes(nodes_, step->nodes);
        recovery_.has_begun(clock::now());
        if (plan_.nodes && !socket_.empty() && !goes_on_without_a_node(opts_.srun))
            departure_ = departure(clock::now(), step->nodes);
        if (plan_.elastic && step->nodes.size() < plan_.nodes && plan_.nodes_of_all && !plan_.component)
            full_size_ = full_size(clock::now(), !began_whole_);
        detail(fmt::format("step {} runs on {}", step_name(), compress_hostlist(step->nodes)));
    }
    if (!socket_.empty()) recovery_.trains() ? look_for_hang() : look_at_training(srun);
    look_at_full_size();
    const bool trains = socket_.empty() || recovery_.trains();
    const bool again = look_at_allocation(srun);
    if (full_size_.is_near(clock::now())) return soon_again;
    if (trains) return again || output_.is_file() || !socket_.empty() ? now_and_then : milliseconds(0);
    return recovery_.stood(clock::now()) < std::chrono::seconds(30) ? soon_again : now_and_then;
}

/// True: to be called again.
bool supervisor::look_at_allocation(pid_t srun) {
    const auto now = clock::now();
    if (overdue_ || left_) {
        if (now - told_to_end_ >= until_told_again) end_step(srun);
        return true;
    }
    if (recovery_.trains()) departure_.trains(now);
    if (!departure_.is_due(now)) return !departure_.is_over();
    const auto job = query_job(job_);
    std::optional<std::vector<std::string>> allocation;
    if (job && job->running) allocation = job->nodes;
    left_ = has_left(allocation);
    if (left_) end_step(srun);
    return left_ || !departure_.is_over();
}

void supervisor::end_step(pid_t srun) {
    told_to_end_ = clock::now();
    ::kill(srun, SIGTERM);
}

/// Whether a node of the step has.
bool supervisor::has_left(const std::optional<std::vector<std::string>>& allocation) {
    const auto left = departure_.look(clock::now(), allocation, newest_saved(socket_, job_));
    if (left.empty()) return false;
    say(fmt::format("step {} runs on {}, which left the allocation: the step is ended", step_name(),
                    compress_hostlist(left)));
    return true;
}

void supervisor::look_at_training(pid_t srun) {
    const auto now = clock::now();
    if (const auto line = recovery_.look(now, newest_saved(socket_, job_), "step " + step_name())) say(*line);
    if (overdue_ || !recovery_.is_overdue(now)) return;
    overdue_ = true;
    say(fmt::format("step {} has completed no training step in {} s: it is ended, and started again",
                    step_name(), recovery_.stood(now).count() / 1000));
    end_step(srun);
}

/// Says once which rank keeps all others waiting.
void supervisor::look_for_hang() {
    auto now = hang_of(socket_, job_);
    if (now && (!hang_ || hang_->ranks != now->ranks || hang_->step != now->step)) say(now->text);
    if (now) hang_ = std::move(now);
}

/// srun tells by no code of its own whether it had a step. One that ends with that of its errors, and whose
/// step we have not seen, had none.
bool supervisor::began() const { return step_ || !own_error_; }

/// False: a cancel came.
bool supervisor::ask_again(const situation& s) {
    nodes_ = s.now.nodes;
    pause_ = std::clamp(pause_ * 2, first_pause, longest_pause);
    return !signals_.wait(clock::now() + pause_);
}

void supervisor::restart(const situation& s, const decision& d) {
    announce(s);
    if (d.idle_restarts == 0)
        recovery_.forget_idle();
    else if (d.idle_restarts > idle_restarts_)
        recovery_.note_idle(fmt::format("{} with code {} after {:.1f} s, training step {}",
                                        step_ ? step_name() : "a step", s.end.code,
                                        static_cast<double>(s.end.ran.count()) / 1000,
                                        s.saved_after ? std::to_string(*s.saved_after) : "unknown"));
    ++restarts_;
    idle_restarts_ = d.idle_restarts;
    kind_ = d.kind;
    recovery_.begin(clock::now(), step_ ? "step " + step_name() : "the step", s.saved_after);
    pause_ = milliseconds(0);
    nodes_ = s.now.nodes;
}

situation supervisor::look(const step_end& end) {
    situation s;
    s.end = end;
    s.nodes_before = nodes_;
    s.nodes_needed = plan_.elastic ? plan_.min_nodes : std::max(plan_.nodes, 1U);
    s.nodes_of_all = std::max(plan_.nodes, 1U);
    s.left = left_;
    s.told = failure_;
    s.kind_before = kind_;
    s.planned = plan_.nodes != 0;
    s.restarts = restarts_;
    s.idle_restarts = idle_restarts_;
    s.max_restarts = opts_.max_restarts;
    s.max_idle_restarts = opts_.max_idle_restarts;
    s.saved_before = recovery_.to_beat();
    s.saved_after = newest_saved(socket_, job_);
    s.recovering = recovery_.runs();
    s.began = began();
    s.stood = recovery_.stood(clock::now());
    s.start_within = opts_.start_within;
    if (overdue_ || left_) s.end.cancelled = signals_.cancelled();  // that end was our own doing
    if (auto now = query_job(job_)) {
        job_now_ = std::move(*now);
        s.requeued = job_now_.restarts != 0;
        s.now = {true, job_now_.running, job_now_.name, job_now_.nodes,
                 refused_.empty() ? job_now_.no_requeue : refused_};
    } else {
        detail(now.error().text());
        if (now.error().code == errc::not_found)
            s.now = {true, false, "gone", {}, {}};
        else
            s.now.known = false;
    }
    return s;
}

decision supervisor::wait_for_slurmctld(situation& s, decision d) {
    say(fmt::format("{}; {}; waiting up to {} s", end_line(s, step_ ? step_name() : ""), d.why,
                    opts_.wait.count() / 1000));
    const auto until = clock::now() + opts_.wait;
    auto pause = first_pause;
    while (d.what == action::wait && clock::now() < until) {
        if (signals_.wait(std::min(clock::now() + pause, until))) s.end.cancelled = true;
        pause = std::min(pause * 2, longest_pause);
        const auto cancelled = s.end.cancelled;
        s = look(s.end);
        s.end.cancelled = cancelled;
        d = decide(s);
        if (d.what == action::requeue) d = requeue(s, d);
    }
    if (d.what == action::wait)
        d.why +=
            fmt::format(", and nothing changed in {} s (--wait-for-slurmctld)", opts_.wait.count() / 1000);
    return d;
}

int supervisor::finish(const situation& s, const decision& d) const {
    if (!d.why.empty())
        say(fmt::format("{}; it is not started again: {}", end_line(s, step_ ? step_name() : ""), d.why));
    const bool idle = idle_restarts_ >= opts_.max_idle_restarts && !d.why.empty();
    const bool given_up = idle || !d.kind.empty();
    const auto ends = recovery_.idle_ends();
    if (given_up && !ends.empty()) say("what brought no training further: " + ends);
    if (given_up) tell_of_giving_up(s.end, d.why, ends);
    return s.end.code;
}

/// The fault daemon keeps it with the job's incident, by the checkpoint daemon, which knows whose the job is.
void supervisor::tell_of_giving_up(const step_end& end, const std::string& why,
                                   const std::string& ends) const {
    auto text = fmt::format("{} ended with code {} after {} restarts: {}",
                            step_ ? "step " + step_name() : "the step", end.code, restarts_, why);
    if (!ends.empty()) text += "; " + ends;
    if (const auto told = give_up_at(socket_, job_, step_.value_or(0), text); !told)
        detail(fmt::format("the fault daemon does not hear of it: {}", told.error().text()));
}

void supervisor::announce(const situation& s) {
    std::vector<std::string> spares;
    for (const auto& node : s.now.nodes)
        if (std::ranges::find(unused_, node) != unused_.end()) spares.push_back(node);
    say(restart_line(s, step_ ? step_name() : "", spares));
}

std::string supervisor::step_name() const { return fmt::format("{}.{}", job_, step_.value_or(0)); }

void supervisor::say(const std::string& text) const {
    std::fprintf(stderr, "banyan-run: %s\n", printable(text).c_str());
}

void supervisor::detail(const std::string& text) const {
    if (opts_.debug) say(text);
}

}  // namespace banyan::supervisor
