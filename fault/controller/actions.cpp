// SPDX-License-Identifier: BSD-3-Clause
//
// What is done about an incident, in order: seal, node out, then each job that had the node. What is done
// already, by this controller or by one that ended in the middle, is told by Slurm.
#include <algorithm>
#include <chrono>
#include <set>

#include <fmt/format.h>

#include "common/clock.hpp"
#include "fault/controller/controller.hpp"
#include "fault/controller/interruption.hpp"
#include "fault/controller/leaving.hpp"
#include "fault/controller/node_reasons.hpp"
#include "fault/controller/rank_search.hpp"
#include "fault/controller/sweeping.hpp"
#include "fault/incident/job_rules.hpp"
#include "fault/incident/nvlink_rules.hpp"

namespace banyan::fault {
namespace {

// "Xid 79 GPU 3 fell off the bus" -> "banyan: gpu: Xid 79 GPU 3 fell off the bus [f00012]"
std::string slurm_reason(const incident& i) {
    return fmt::format("{} {}: {} [{}]", our_reason_prefix, name_of(i.object.kind), i.cause.substr(0, 160),
                       i.id());
}

constexpr std::size_t longest_told = 160;

// What waits for a node, or for slurmctld, while there is no room.
constexpr std::chrono::seconds looks_again_after(10);

constexpr std::string_view waits_for_its_return = "held back: the node is down with the reason ";

std::string by_rule(const incident& i) { return i.rule.empty() ? "" : fmt::format(", rule {}", i.rule); }

bool was_said(const incident& i, const std::string& what, std::string_view beginning) {
    return std::ranges::any_of(
        i.actions, [&](const auto& a) { return a.what == what && a.result.starts_with(beginning); });
}

constexpr std::string_view user_told = "its user is told";

/// An attempt that failed, or was none in dry run, has told nobody.
bool was_told(const incident& i, const std::string& job, std::string_view result) {
    return std::ranges::any_of(i.actions, [&](const auto& a) {
        return a.what == "notify-user" && a.target == job && a.result == result;
    });
}

/// Why what somebody approved is not that any more which is to be done now.
std::optional<std::string> approval_lapses(const incident& i, step_kind asked) {
    if (i.approved_by.empty() || !has_limits(asked)) return std::nullopt;
    if (i.decided != static_cast<std::uint8_t>(asked) && i.decided < action_words().size())
        return fmt::format("lapses: \"{}\" was approved, and \"{}\" is asked for now",
                           name_of(static_cast<step_kind>(i.decided)), name_of(asked));
    const auto said = std::ranges::find_if(i.actions.rbegin(), i.actions.rend(), [&](const auto& a) {
        return a.what == "approve" && a.result.starts_with("by " + i.approved_by);
    });
    if (said != i.actions.rend() && clock::wall_ms() - said->at_ms > most_held_ms)
        return fmt::format("lapses: what {} approved could not be done for {} h", i.approved_by,
                           most_held_ms / 3'600'000);
    return std::nullopt;
}

/// Jobs whose end or new beginning was not seen.
std::vector<std::uint64_t> unsettled(const incident& i) {
    auto out = i.jobs;
    std::erase_if(out, [&](auto id) { return i.find_action("job", std::to_string(id)) != nullptr; });
    return out;
}

// Slurm's jobs are not listed, and no budget is asked for, while nothing has changed.
task<bool> is_as_it_was(records& all, asio::thread_pool& pool, cluster& slurm, std::uint64_t number) {
    const auto* i = all.incidents().find(number);
    if (!i || i->state != incident_state::held || i->closed_ms != 0 || !i->approved_by.empty())
        co_return false;
    if (i->actions.empty() || !i->actions.back().result.starts_with(waits_for_its_return)) co_return false;
    const auto node = i->object.node, said = i->actions.back().result;
    const auto now = co_await run_blocking(pool, [&slurm, &node] { return slurm.node(node); });
    co_return now && now->down && !now->drained && said.contains(fmt::format("\"{}\"", now->reason));
}

}  // namespace

task<void> controller::act(std::uint64_t number) {
    if (!acting_.insert(number).second) {
        again_.insert(number);  // it became worse while we act: look again afterwards
        if (is_overtaken(number)) {
            hub_.give_up_sweep(number);
            followers_.leave(number);
        }
        co_return;
    }
    // What is followed keeps the incident unfinished: another controller would go on with it.
    const auto waits = [this, number] {
        const auto* i = records_.incidents().find(number);
        return i && i->state != incident_state::held && followers_.any(number) && !is_overtaken(number);
    };
    do {
        again_.erase(number);
        co_await act_once(number);
        while (waits()) co_await followers_.wait(number);
    } while (again_.contains(number));
    acting_.erase(number);
    if (auto* i = records_.incidents().find(number); i && i->state != incident_state::held) {
        i->state = incident_state::done;
        i->held_ms = 0;
        i->approved_by.clear();
    }
    co_await records_.save(number);
}

bool controller::is_overtaken(std::uint64_t number) {
    const auto* i = records_.incidents().find(number);
    if (!i || !again_.contains(number) || i->decided >= action_words().size()) return false;
    const auto was = static_cast<step_kind>(i->decided);
    return has_limits(was) && node_stays(*i) && rules_.decide(*i, incidents().all()).step > was;
}

decision controller::judge(incident& i, bool restarted) {
    const auto boot = hub_.boot_of(i.object.node);
    const bool same_boot = !restarted && (boot.empty() || boot == i.boot_id),
               current = same_boot || kind_of(i) == line_kind::fabric;
    const bool tripped = limiter_.tripped();
    auto out = rules_.decide(i, incidents().all());
    if (auto why = approval_lapses(i, out.step)) {
        records_.record(i.number, "approve", i.object.node, *why, false);
        i.approved_by.clear();
    }
    if (has_limits(out.step) && !i.approved_by.empty()) {
        if (keeps_the_node(out.step))
            limiter_.count_where_node_stays(i.number, clock::wall_ms());
        else
            limiter_.count(i.object.node, clock::wall_ms());
    } else if (out.step >= step_kind::avoid && !i.cancelled_by.empty()) {
        out.allowed = false;
        out.why = "cancelled by " + i.cancelled_by;
    } else {
        out = limiter_.narrow(std::move(out), i, current, nodes_, clock::wall_ms());
    }
    if (limiter_.tripped() != tripped) records_.save_breaker_soon(limiter_.tripped(), config_.dry_run);
    i.advice = advice_of(out, i.object.node, config_.dry_run);
    i.rule = out.rule;
    i.decided = static_cast<std::uint8_t>(out.step);
    records_.incidents().touch();
    return out;
}

task<void> controller::act_once(std::uint64_t number) {
    if (look_again_.erase(number) != 0 && co_await is_as_it_was(records_, pool_, *slurm_, number)) {
        look_again_[number] = clock::now() + looks_again_after;
        co_return;
    }
    const bool restarted = co_await was_restarted(number);
    auto* i = records_.incidents().find(number);
    // A cable that flaps is up again by now.
    const bool over = i && i->closed_ms != 0;
    if (!i ||
        (over && (!ended_by_itself(*i) || rules_.decide(*i, incidents().all()).step != step_kind::avoid)))
        co_return;
    i->state = incident_state::acting;
    if (nodes_ == 0 && has_limits(rules_.decide(*i, incidents().all()).step)) {
        const auto count = co_await run_blocking(pool_, [this] { return slurm_->node_count(); });
        if (count) nodes_ = *count;
    }
    const auto what = judge(*i, restarted);
    if (what.step == step_kind::avoid) {
        if (what.allowed) co_await avoidance_.keep_off(number, limiter_.tripped());
        if (!(i = records_.incidents().find(number)) || over || !has_a_node(*i)) co_return;
    }
    const auto node = i->object.node;
    const bool accuses_job = i->root_precedence == static_cast<std::uint8_t>(precedence::app);
    const bool tells = what.step == step_kind::tell;
    // Who looks at an alert wants to know whom it concerns.
    const bool alerts = what.step == step_kind::alert && has_a_node(*i);
    if (what.step == step_kind::ignore || (what.step < step_kind::seal && !accuses_job && !tells && !alerts))
        co_return;
    auto jobs = co_await run_blocking(pool_, [this, &node] { return slurm_->jobs_on(node); });
    if (!jobs) records_.complain(jobs.error());
    if (!jobs && (tells || has_limits(what.step))) {
        put_off(number, "jobs", jobs.error().text());
        if (!what.allowed) look_again_[number] = clock::now() + looks_again_after;
        co_return;
    }
    if (!jobs && alerts) {
        say_once(number, "jobs", "not known: " + jobs.error().text());
    }
    // Other nodes of its NVLink domain told meanwhile, and the culprit is another, in another incident.
    if (!(i = records_.incidents().find(number)) || was_folded(*i)) co_return;
    taking how{.leave = what.step == step_kind::node_out,
               .lost = i->reason == silent_reason,
               .stuck = i->reason == stuck_reason,
               .jobs = {}};
    if (jobs) how.jobs = std::move(*jobs);
    // The node is well: only the process does not end, and its user may have seen to that.
    if (how.stuck && std::ranges::any_of(how.jobs, [&](const auto& job) {
            return std::ranges::find(i->jobs, job.id) == i->jobs.end();
        }))
        how.leave = false;
    const bool one_jobs = concerns_one_job(*i);
    if (one_jobs) std::erase_if(how.jobs, [&](const auto& job) { return job.id != i->accused; });
    // Until something was done those count that have the node now: an application's error may have named
    // others.
    // Nor do those count that merely have the node, where the line names the job.
    if ((i = records_.incidents().find(number)) && !how.jobs.empty() && i->sealed_ms == 0 &&
        i->node_out_ms == 0 && !((accuses_job || one_jobs) && i->accused != 0) && !how.stuck) {
        i->jobs.clear();
        for (const auto& job : how.jobs) i->jobs.push_back(job.id);
    }
    for (const auto folded : records_.incidents().fold_ends(number)) records_.save_soon(folded);
    if (tells) co_await tell_users(number, how.jobs);
    if (what.step >= step_kind::seal) co_await seal_jobs(number, how.jobs);
    co_await note_ranks(records_, pool_, *slurm_, number, how.jobs);
    if (!has_limits(what.step)) co_return;
    if (!(i = records_.incidents().find(number)) || was_folded(*i)) co_return;
    if (!what.allowed) {
        const std::string verb = keeps_the_node(what.step) ? std::string(name_of(what.step))
                                 : how.leave               ? "node_down"
                                                           : "node_drain";
        if (!what.later && !how.stuck) {
            say_once(
                number, verb,
                fmt::format("held back: {}{}", what.why,
                            i->kept_from_sweep ? ". It stays drained: banyan-fault resume " + node : ""));
            co_return;
        }
        // The sweep would return the node meanwhile. That it stays out takes no node out, and ends no job.
        bool failed = false;
        if (what.later && !keeps_the_node(what.step) && !how.stuck && !how.lost && !config_.dry_run) {
            const auto reason = slurm_reason(*i);
            i->begun = true;
            if (!i->nvlink_domain.empty()) co_await records_.save(number);
            const auto kept = co_await run_blocking(
                pool_, [this, &node, &reason] { return keep_from_sweep(*slurm_, node, reason); });
            if (!kept) records_.complain(kept.error());
            failed = !kept;
            i = records_.incidents().find(number);
            if (i && kept && *kept) {
                i->kept_from_sweep = true;
                if (i->closed_by == fabric_is_back && kind_of(*i) != line_kind::fabric) {
                    i->closed_ms = 0;
                    i->closed_by.clear();
                }
                records_.record(number, "node_drain", node,
                                fmt::format("done while the rest is held back: \"{}\"", reason), true);
            }
        }
        put_off(number, verb, what.why);
        if (failed) look_again_[number] = clock::now() + looks_again_after;
        co_return;
    }
    // From here it is no other's evidence any more, whatever its NVLink domain tells.
    i->begun = true;
    if (!i->nvlink_domain.empty()) co_await records_.save(number);
    if (what.step == step_kind::sweep) {
        // What it found may match another rule.
        const sweep_wish wish{.busy = what.busy, .dry_run = config_.dry_run, .jobs = how.jobs.size()};
        bool told = is_overtaken(number);
        if (!told) told = co_await sweep_node(records_, hub_, number, wish);
        // Who approved a sweep did not approve what follows from it.
        if ((i = records_.incidents().find(number)) && told) i->approved_by.clear();
        if (told) again_.insert(number);
        if (!told && i && i->swept.empty()) limiter_.unspent(number);
        co_return;
    }
    if (is_for_jobs(what.step)) {
        auto done = co_await interrupt_jobs(verifier_, number, what.step, std::move(how.jobs));
        followers_.begin(number, done.queued, true);
        i = records_.incidents().find(number);
        if (!done.failed && i && std::ranges::none_of(i->actions, is_interruption)) limiter_.unspent(number);
        if (done.failed) put_off(number, std::string(name_of(what.step)), done.failed->text());
        co_return;
    }
    if (!how.leave && !how.jobs.empty()) {
        const auto able =
            co_await run_blocking(pool_, [this, &how, &node] { return can_leave(*slurm_, how.jobs, node); });
        if (!able && able.error().code == errc::unavailable) {
            put_off(number, "jobs", able.error().text());
            co_return;
        }
        how.leave = how.if_all_can = able.has_value();
        if (!able) say_once(number, "job", able.error().what + ": the jobs of the node stay on it");
    }
    if (!co_await take_node_out(number, how)) co_return;
    const bool vacated = how.leave || how.jobs.empty();
    // After a restart the node may be out already, while its jobs still wait for us.
    if (i = records_.incidents().find(number); i && how.jobs.empty())
        for (const auto id : unsettled(*i))
            if (auto job = co_await run_blocking(
                    pool_, [this, id] { return slurm_->job(static_cast<std::uint32_t>(id)); }))
                how.jobs.push_back(std::move(*job));
    if (vacated) followers_.begin(number, how.jobs, false);
}

void controller::say_once(std::uint64_t number, const std::string& what, std::string why) {
    const auto* i = records_.incidents().find(number);
    if (!i) return;
    // Another answer since makes it news again.
    const auto last = std::ranges::find_if(i->actions.rbegin(), i->actions.rend(), [&](const auto& a) {
        return a.what == what && a.target == i->object.node;
    });
    if (last == i->actions.rend() || last->result != why)
        records_.record(number, what, i->object.node, std::move(why), false);
}

/// The user of the job that the line names; of each job that has the node, where it names none. Once.
task<void> controller::tell_users(std::uint64_t number, std::vector<job_status> jobs) {
    auto* i = records_.incidents().find(number);
    if (!i) co_return;
    std::set<std::uint32_t> whom;
    for (const auto& job : jobs) whom.insert(job.id);
    if (i->accused != 0) whom = {i->accused};
    const auto node = i->object.node,
               text = fmt::format("{} {} ({}): {} [{}]", our_reason_prefix, i->cause.substr(0, longest_told),
                                  i->object.text(), i->advice, i->id());
    if (whom.empty() && !i->find_action("notify-user", node))
        records_.record(number, "notify-user", node,
                        i->accused == 0 && concerns_one_job(*i)
                            ? "which job's application failed is not known: nobody is told"
                            : "no job has the node: nobody is told",
                        true);
    for (const auto id : whom) {
        const auto target = std::to_string(id);
        if ((i = records_.incidents().find(number)) && was_told(*i, target, user_told)) continue;
        result<void> done;
        if (!config_.dry_run)
            done = co_await run_blocking(pool_, [this, id, &text] { return slurm_->tell(id, text); });
        const std::string came_of_it = config_.dry_run ? "dry run: its user would be told"
                                       : done          ? std::string(user_told)
                                                       : done.error().text();
        if (!(i = records_.incidents().find(number)) || was_told(*i, target, came_of_it)) continue;
        records_.record(number, "notify-user", target, came_of_it, !config_.dry_run && done);
    }
}

task<void> controller::seal_jobs(std::uint64_t number, std::vector<job_status> jobs) {
    auto* i = records_.incidents().find(number);
    const auto node = i->object.node;
    if (jobs.empty() || i->sealed_ms != 0) co_return;
    std::vector<std::string> nodes;
    for (const auto& job : jobs) nodes.insert(nodes.end(), job.nodes.begin(), job.nodes.end());
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    const auto one_job = jobs.size() == 1 ? jobs.front().id : 0;
    const auto report = co_await hub_.seal(std::move(nodes), one_job, config_.seal_timeout);
    if ((i = records_.incidents().find(number))) i->sealed_ms = clock::wall_ms();
    records_.record(number, "seal", node, report.text(), report.answered > 0);
}

task<bool> controller::take_node_out(std::uint64_t number, taking& how) {
    auto* i = records_.incidents().find(number);
    std::string verb = how.leave ? "node_down" : "node_drain";
    const auto node = i->object.node, reason = slurm_reason(*i), mark = fmt::format("[{}]", i->id()),
               rule = by_rule(*i);
    if (config_.dry_run) {
        if (!was_said(*i, verb, "dry run: "))
            records_.record(number, verb, node,
                            fmt::format("dry run: would set {} {} with \"{}\"{}", node,
                                        how.leave ? "DOWN" : "DRAIN", reason, rule),
                            false);
        co_return false;
    }
    auto status = co_await run_blocking(pool_, [this, &node] { return slurm_->node(node); });
    if (!status) {
        put_off(number, verb, status.error().text());
        co_return false;
    }
    const bool lost = how.lost && how.leave;
    // The sweep returns the node when its own checks are fit, which know nothing of this fault: its reason is
    // replaced, also where the node is out already.
    const bool sweeps = status->reason.starts_with(sweep_reason_prefix);
    const bool out = status->down || status->drained,
               ours = sweeps || status->reason.starts_with(our_reason_prefix);
    // As it was when its jobs were asked for, perhaps: what is down has none.
    const bool occupied = how.leave && !status->down && (how.stuck || !how.jobs.empty());
    const auto leave_alone = [&](std::string why) {
        if (const auto* of = records_.incidents().find(number);
            of && (how.stuck ? of->node_out_ms == 0 : !ours))
            limiter_.not_wanted(*of, incidents().all());
        if (how.stuck) {
            give_up(number, verb, std::move(why));
            return false;
        }
        say_once(number, verb, std::move(why));
        return false;
    };
    const bool marked = status->reason.find(mark) != std::string::npos;
    if (marked && status->down && !status->drained && !how.lost) {
        // Half of it was done before, and it would be back with its slurmd.
        const auto set =
            co_await run_blocking(pool_, [this, &node, &reason] { return slurm_->set_drain(node, reason); });
        if (!set) {
            put_off(number, verb, set.error().text(), true);
            co_return false;
        }
        status->drained = true;
    }
    const bool done = lost ? status->down : status->drained || (how.lost && status->down);
    if (marked && done && !occupied) {
        // Done before, perhaps by a controller that ended before it wrote that down.
        if ((i = records_.incidents().find(number)) && i->node_out_ms == 0) {
            i->node_out_ms = clock::wall_ms();
            records_.record(number, verb, node,
                            i->kept_from_sweep ? "done: it was out already" : "done by an earlier controller",
                            true);
        }
        co_return true;
    }
    i = records_.incidents().find(number);
    if (how.stuck && i)
        if (auto why = no_longer_stuck(*i, how.jobs, started_ms_)) {
            if (i->node_out_ms == 0) limiter_.not_wanted(*i, incidents().all());
            give_up(number, verb, std::move(*why));
            co_return false;
        }
    if (!i || i->closed_ms != 0)
        co_return leave_alone("nothing to do: closed meanwhile" + (i ? ", by " + i->closed_by : ""));
    // What is DOWN and no more is back in service with its slurmd, by Slurm's ReturnToService. What was lost
    // may be, and what held up a job does so no longer.
    const bool comes_back = status->down && !status->drained && !how.lost && !how.stuck,
               foreign = !status->reason.empty() && !ours && !is_slurms_own(*status);
    if (foreign && comes_back) {
        limiter_.not_wanted(*i, incidents().all());
        put_off(number, verb,
                fmt::format("the node is down with the reason \"{}\", and would be back as it is: it is "
                            "looked at again",
                            status->reason));
        look_again_[number] = clock::now() + looks_again_after;
        co_return false;
    }
    // Perhaps somebody has mended it: what needs no restart of the node is not asked for against his word.
    if (!out && (!how.leave || how.if_all_can) && i->approved_by.empty() &&
        (was_said(*i, "node_down", waits_for_its_return) || was_said(*i, "node_drain", waits_for_its_return)))
        co_return leave_alone(
            fmt::format("held back: the node was taken down by somebody, and is back. "
                        "banyan-fault approve {} takes it out",
                        i->id()));
    if (foreign && (!out || status->down || !occupied))
        co_return leave_alone(fmt::format("left alone: the node has the reason \"{}\"", status->reason));
    const bool worse = sweeps || comes_back || (how.leave && !status->down && (ours || occupied));
    if (out && !worse)
        co_return leave_alone(fmt::format("nothing to do: the node is out already (\"{}\")", status->reason));
    bool drained = false, by_half = marked && out;
    if (how.if_all_can) {
        // Other jobs may have begun since they were asked for. No more do once it is drained.
        const std::string drain = lost || status->drained ? "" : reason;
        auto leaving = co_await run_blocking(pool_, [this, &node, &drain, &by_half] {
            return jobs_that_leave(*slurm_, node, drain, by_half);
        });
        if (!leaving && leaving.error().code == errc::unavailable) {
            put_off(number, verb, leaving.error().text(), by_half);
            co_return false;
        }
        if (!leaving) {
            how.leave = how.if_all_can = false;
            say_once(number, "job", leaving.error().what + ": the jobs of the node stay on it");
            if (drain.empty()) co_return co_await take_node_out(number, how);
            verb = "node_drain";
            drained = true;
        } else {
            i = records_.incidents().find(number);
            for (auto& job : *leaving) {
                if (std::ranges::find(how.jobs, job.id, &job_status::id) != how.jobs.end()) continue;
                if (i && std::ranges::find(i->jobs, job.id) == i->jobs.end()) i->jobs.push_back(job.id);
                how.jobs.push_back(std::move(job));
            }
        }
    }
    result<void> set;
    if (!drained)
        set = co_await run_blocking(pool_, [this, &node, &reason, &how, lost, foreign] {
            return foreign     ? slurm_->release(node)
                   : lost      ? slurm_->set_lost(node, reason)
                   : how.leave ? slurm_->set_down(node, reason)
                               : slurm_->set_drain(node, reason);
        });
    if (!set) {
        if (!by_half && !foreign) {
            // The first of its calls may be done. Where that is not told it counts until the next try.
            const auto now = co_await run_blocking(pool_, [this, &node] { return slurm_->node(node); });
            by_half = !now || ((now->down || now->drained) && now->reason.find(mark) != std::string::npos);
        }
        put_off(number, verb, set.error().text(), by_half);
        co_return false;
    }
    if ((i = records_.incidents().find(number))) {
        i->node_out_ms = clock::wall_ms();
        limiter_.took(*i, i->node_out_ms);  // another of its incidents may have been put off meanwhile
        // Its port came up in this very moment, or somebody returned the node before this took it out again:
        // nobody looks for the cause of a drain in what is closed.
        const bool is_back = i->closed_by == fabric_is_back && kind_of(*i) != line_kind::fabric;
        if (is_back || (i->closed_ms != 0 && i->find_action(resume_verb, node))) {
            i->closed_ms = 0;
            i->closed_by.clear();
        }
    }
    records_.record(number, verb, node,
                    foreign
                        ? fmt::format("done: its jobs leave it; it keeps the reason \"{}\"", status->reason)
                        : fmt::format("done: \"{}\"{}", reason, rule),
                    true);
    co_return true;
}

}  // namespace banyan::fault
