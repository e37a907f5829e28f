// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/interruption.hpp"

#include <algorithm>

#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "common/text.hpp"
#include "fault/incident/job_rules.hpp"

namespace banyan::fault {
namespace {

constexpr std::string_view ended_words = "ends step ", queue_words = "run ";

/// When the fault was there for the last time, by the node's own clock.
std::int64_t last_seen(const incident& i) { return i.seen.empty() ? i.line_ms : i.seen.back(); }

const action_record* begun(const incident& i, std::string_view verb, const std::string& target) {
    const auto found = std::ranges::find_if(
        i.actions, [&](const auto& a) { return a.what == verb && a.target == target && is_interruption(a); });
    return found == i.actions.end() ? nullptr : &*found;
}

std::string ended_text(std::uint32_t job, std::uint32_t step, std::uint32_t run) {
    return fmt::format("{}{}.{} of run {}: banyan-run starts it again", ended_words, job, step, run);
}

struct step_of_run {
    std::uint32_t step = 0, run = 0;
};

/// Of "ends step 7.3 of run 0: ...".
std::optional<step_of_run> step_in(std::string_view text) {
    if (!text.starts_with(ended_words)) return std::nullopt;
    const auto number = [&](std::string_view after, std::string_view until) -> std::optional<std::uint32_t> {
        const auto at = text.find(after);
        if (at == std::string_view::npos) return std::nullopt;
        text.remove_prefix(at + after.size());
        const auto n = parse_number(text.substr(0, text.find(until)), UINT32_MAX);
        return n ? std::optional(static_cast<std::uint32_t>(*n)) : std::nullopt;
    };
    const auto step = number(".", " "), run = number("of run ", ":");
    return step && run ? std::optional(step_of_run{*step, *run}) : std::nullopt;
}

std::string queue_text(std::uint32_t run) {
    return fmt::format("{}{} goes back into the queue", queue_words, run);
}

std::string over_text(std::uint32_t run) { return fmt::format("not done: run {} is over", run); }

/// Of "run 2 goes back into the queue".
std::optional<std::uint32_t> run_in(std::string_view text) {
    if (!text.starts_with(queue_words)) return std::nullopt;
    text.remove_prefix(queue_words.size());
    const auto run = parse_number(text.substr(0, text.find(' ')), UINT32_MAX);
    return run ? std::optional(static_cast<std::uint32_t>(*run)) : std::nullopt;
}

class interrupter {
  public:
    interrupter(const verification_tools& tools, std::uint64_t number, step_kind what)
        : tools_(tools), number_(number), what_(what), verb_(name_of(what)) {}

    task<interruption> run(std::vector<job_status> jobs);

  private:
    incident* known() const { return tools_.known.incidents().find(number_); }
    task<result<void>> restart(job_status job);
    void follow_ended(job_status job);
    task<result<void>> requeue(job_status job);
    task<void> take_up_queued();
    /// Nothing of it is left to do: it began after the fault, or another incident's action came between.
    bool is_of_the_past(std::uint32_t job, std::int64_t start_time, const std::string& called);
    /// Once: the jobs of an incident are looked at again whenever it becomes worse.
    void say(const std::string& target, std::string text, bool done = false);

    const verification_tools& tools_;
    const std::uint64_t number_;
    const step_kind what_;
    const std::string verb_;
    interruption out_;
};

void interrupter::say(const std::string& target, std::string text, bool done) {
    const auto* i = known();
    const bool said = i && std::ranges::any_of(i->actions, [&](const auto& a) {
                          return a.what == verb_ && a.target == target && a.result == text;
                      });
    if (!said) tools_.known.record(number_, verb_, target, std::move(text), done);
}

bool interrupter::is_of_the_past(std::uint32_t job, std::int64_t start_time, const std::string& called) {
    const auto* i = known();
    if (!i) return true;
    const auto target = std::to_string(job);
    const auto fault_ms = last_seen(*i);
    if (start_time * 1000 > fault_ms) {
        say(target, fmt::format("nothing to do: {} began after the fault was seen", called), true);
        return true;
    }
    for (const auto& [number, other] : tools_.known.incidents().all())
        for (const auto verb : {name_of(step_kind::restart), name_of(step_kind::requeue)})
            if (const auto* a = begun(other, verb, target); a && number != number_ && a->at_ms >= fault_ms) {
                say(target,
                    fmt::format("nothing to do: it was interrupted for incident {} since", other.id()), true);
                return true;
            }
    return false;
}

task<result<void>> interrupter::restart(job_status job) {
    const auto node = known()->object.node, target = std::to_string(job.id);
    const auto ranks = co_await run_blocking(tools_.pool, [&] { return tools_.slurm.ranks_on(job, node); });
    result<bool> again = false;
    if (ranks) again = co_await run_blocking(tools_.pool, [&] { return tools_.slurm.starts_again(job); });
    // From here on nothing is waited for until what is done is written down: another incident of the job
    // looks for that.
    const auto* i = known();
    if (!i) co_return result<void>{};
    const auto* before = begun(*i, verb_, target);
    if (!ranks && ranks.error().code == errc::unavailable) co_return std::unexpected(ranks.error());
    if (!ranks) {
        if (before)
            follow_ended(std::move(job));
        else
            say(target, "left alone: " + ranks.error().text());
        co_return result<void>{};
    }
    const auto step = ranks->step;
    const auto words = ended_text(job.id, step, job.restarts);
    if (before && before->result != words) {
        follow_ended(std::move(job));
        co_return result<void>{};
    }
    if (!before) {
        if (i->closed_ms != 0 ||
            is_of_the_past(job.id, ranks->start_time, fmt::format("step {}.{}", job.id, step)))
            co_return result<void>{};
        if (!again) co_return std::unexpected(again.error());
        if (!*again) {
            // Its script would see the step fail, and the job end with it.
            say(target, fmt::format("left alone: no banyan-run would start step {}.{} again", job.id, step));
            co_return result<void>{};
        }
        if (tools_.dry_run) {
            say(target, fmt::format("dry run: step {}.{} would be ended, to start again", job.id, step));
            co_return result<void>{};
        }
        tools_.known.record(number_, verb_, target, words, true);
        co_await tools_.known.save(number_);
    }
    const bool followed = (i = known()) && std::ranges::any_of(i->followed, [&](const followed_job& f) {
                              return f.job == job.id && f.ended_step == step;
                          });
    const auto done = co_await run_blocking(
        tools_.pool, [this, &job, step] { return tools_.slurm.end_step(job.id, step); });
    if (!done) co_return std::unexpected(done.error());
    if (!followed) asio::co_spawn(tools_.io, verify_job(tools_, number_, job, step), asio::detached);
    co_return result<void>{};
}

/// The step that an earlier controller ended is there no more, and that controller may have ended before it
/// could write down that it follows the job.
void interrupter::follow_ended(job_status job) {
    const auto* i = known();
    const auto target = std::to_string(job.id);
    const auto* before = i ? begun(*i, verb_, target) : nullptr;
    const auto ended = before ? step_in(before->result) : std::nullopt;
    if (!ended || i->find_action("verify", target) ||
        std::ranges::find(i->followed, job.id, &followed_job::job) != i->followed.end())
        return;
    job.restarts = ended->run;
    asio::co_spawn(tools_.io, verify_job(tools_, number_, std::move(job), ended->step), asio::detached);
}

task<result<void>> interrupter::requeue(job_status job) {
    const auto target = std::to_string(job.id);
    const auto* i = known();
    const auto* before = begun(*i, verb_, target);
    const auto words = queue_text(job.restarts);
    if (before && before->result != words) co_return result<void>{};  // it runs again
    if (!before) {
        const auto needed =
            co_await run_blocking(tools_.pool, [&] { return tools_.slurm.nodes_needed(job); });
        if (!needed && needed.error().code == errc::unavailable) co_return std::unexpected(needed.error());
        const auto why = !needed    ? needed.error().text()
                         : !*needed ? "it was placed without a plan"
                                    : "it may not be requeued";
        if (!needed || !*needed || !job.may_requeue) {
            say(target, "left alone: " + why);
            co_return result<void>{};
        }
        // Before it is written down as well: what is written counts for the limits, and is followed.
        const auto runs = co_await still_runs(tools_, job.id, job.restarts);
        if (!runs) co_return std::unexpected(runs.error());
        if (!*runs) {
            say(target, over_text(job.restarts));
            co_return result<void>{};
        }
        // Nothing is waited for from here until it is: two incidents may ask for the same job.
        if (is_of_the_past(job.id, job.start_time, "its run")) co_return result<void>{};
        if (i = known(); i->closed_ms != 0) co_return result<void>{};
        if (tools_.dry_run) {
            say(target, "dry run: would be requeued");
            co_return result<void>{};
        }
        tools_.known.record(number_, verb_, target, words, true);
        co_await tools_.known.save(number_);
    }
    const auto there = co_await still_runs(tools_, job.id, job.restarts);
    if (!there) co_return std::unexpected(there.error());
    if (!*there) {
        say(target, over_text(job.restarts));
        co_return result<void>{};
    }
    const auto done =
        co_await run_blocking(tools_.pool, [this, &job] { return tools_.slurm.requeue(job.id); });
    co_return done;
}

/// Those that are not known to run again yet: by this controller, or by one that ended.
task<void> interrupter::take_up_queued() {
    const auto actions = known()->actions;
    for (const auto& a : actions) {
        const auto run = a.what == verb_ ? run_in(a.result) : std::nullopt;
        const auto id = parse_number(a.target, UINT32_MAX);
        const auto* i = known();
        if (!run || !id || !i || i->find_action("job", a.target)) continue;
        const auto job = static_cast<std::uint32_t>(*id);
        auto now = co_await run_blocking(tools_.pool, [&] { return tools_.slurm.job(job); });
        if (!now) continue;  // gone, or told by nobody: it is in the queue, and starts by itself
        now->restarts = *run;
        out_.queued.push_back(std::move(*now));
    }
}

task<interruption> interrupter::run(std::vector<job_status> jobs) {
    const auto* i = known();
    if (!i) co_return std::move(out_);
    const auto node = i->object.node;
    const bool told = concerns_one_job(*i);  // however little it weighs, it is the job's alone
    const bool by_application = told || i->root_precedence == static_cast<std::uint8_t>(precedence::app);
    if (by_application && i->accused != 0)
        std::erase_if(jobs, [&](const auto& job) { return job.id != i->accused; });
    // One that is alone now may have shared the node with the one whose process failed.
    if (by_application && i->accused == 0 &&
        (told || jobs.size() > 1 || (jobs.size() == 1 && !jobs[0].exclusive))) {
        say(node, "left alone: which job's application failed is not known");
        co_return std::move(out_);
    }
    if (jobs.empty() && std::ranges::find(i->actions, verb_, &action_record::what) == i->actions.end())
        say(node,
            told ? fmt::format("nothing to do: job {} does not have the node", i->accused)
                 : "nothing to do: no job has the node",
            true);
    for (auto& job : jobs) {
        // g++ 12 frees the frame of one that awaits within a condition twice.
        result<void> done;
        if (what_ == step_kind::restart)
            done = co_await restart(std::move(job));
        else
            done = co_await requeue(std::move(job));
        if (!done) out_.failed = done.error();
        if (!known()) co_return std::move(out_);
    }
    if (what_ == step_kind::requeue) co_await take_up_queued();
    co_return std::move(out_);
}

}  // namespace

bool is_interruption(const action_record& a) {
    return (a.what == name_of(step_kind::restart) && a.result.starts_with(ended_words)) ||
           (a.what == name_of(step_kind::requeue) && a.result.starts_with(queue_words));
}

task<interruption> interrupt_jobs(const verification_tools& tools, std::uint64_t number, step_kind what,
                                  std::vector<job_status> jobs) {
    interrupter it(tools, number, what);
    auto out = co_await it.run(std::move(jobs));
    co_return std::move(out);
}

}  // namespace banyan::fault
