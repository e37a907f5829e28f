// SPDX-License-Identifier: BSD-3-Clause
#include "fault/policy/policy.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "fault/incident/job_rules.hpp"

namespace banyan::fault {
namespace {

constexpr const char* planned = "Slurm restarts the host, or has it without power: nothing to do";

bool same_part(const object& a, const object& b) {
    // A switch that several nodes share is named, and whichever of them told first.
    const bool same_node = a.node == b.node || (a.kind == object_kind::sw && !a.device.empty());
    return same_node && a.kind == b.kind && a.bdf == b.bdf && a.device == b.device && a.hca == b.hca &&
           a.ends == b.ends;
}

std::size_t seen_since(const incident& i, std::int64_t since_ms) {
    if (i.seen.empty()) return i.line_ms > since_ms ? 1 : 0;
    return static_cast<std::size_t>(std::ranges::count_if(i.seen, [&](auto at) { return at > since_ms; }));
}

// Somebody has seen to those that he closed. One that closed itself, of a job or an application that is
// quiet, counts for as long as the rule looks back.
bool counts_still(const incident& i) { return i.closed_ms == 0 || i.closed_by == quiet_job_closes; }

}  // namespace

bool has_a_cable(const incident& i) {
    const auto kind = i.object.kind;
    return (kind == object_kind::link || kind == object_kind::hca) &&
           std::ranges::any_of(i.object.ends, [](const end_point& e) { return e.guid != 0 && e.port != 0; });
}

bool ended_by_itself(const incident& i) {
    return i.closed_ms != 0 && i.closed_by.starts_with(fabric_closes) && i.closed_by != fabric_larger;
}

bool has_a_node(const incident& i) {
    if (is_an_nvlink_domain(i)) return false;
    const auto kind = i.object.kind;
    return kind_of(i) != line_kind::fabric ||
           (kind != object_kind::link && kind != object_kind::sw && kind != object_kind::manager);
}

std::size_t times_seen(const rule& r, const incident& i, const policy::incidents& known) {
    const auto since = i.last_ms - r.within_ms;
    auto out = seen_since(i, since);
    // A link that came back as it went counts, too.
    for (const auto& [number, other] : known)
        if (number != i.number && (counts_still(other) || ended_by_itself(other)) &&
            same_part(other.object, i.object) && r.when.match(other))
            out += seen_since(other, since);
    return out;
}

std::size_t jobs_seen(const rule& r, const incident& i, const policy::incidents& known) {
    const auto since = i.last_ms - r.within_ms;
    std::set<std::uint64_t> jobs;
    const auto take = [&](const incident& one) {
        const bool was_here =
            is_told_of_a_job(i) ? was_hit_on(one, i.object.node, since) : seen_since(one, since) != 0;
        if (!was_here) return;
        if (one.accused != 0)
            jobs.insert(one.accused);
        else if (one.jobs.size() == 1)  // that had the node alone
            jobs.insert(one.jobs.front());
    };
    take(i);
    if (jobs.empty() && is_told_of_a_job(i)) return 0;  // it was elsewhere, or long ago
    // What is told of a job is of wherever the job was.
    const auto of_the_same = [&](const incident& other) {
        if (is_told_of_a_job(i)) return other.object.device == i.object.device && counts_still(other);
        return counts_still(other) && same_part(other.object, i.object);
    };
    for (const auto& [number, other] : known)
        if (number != i.number && of_the_same(other) && r.when.match(other)) take(other);
    return jobs.size();
}

decision policy::decide(const incident& i, const incidents& known) const {
    for (const auto& r : rules_) {
        if (!r.when.match(i)) continue;
        if (r.count > 1 && times_seen(r, i, known) < r.count) continue;
        if (r.jobs > 1 && jobs_seen(r, i, known) < r.jobs) continue;
        if (is_planned(i) && r.step > step_kind::none) return {step_kind::none, true, planned, false, r.name};
        if (r.step == step_kind::avoid && !has_a_cable(i))
            return {step_kind::alert, true, r.why + ", but which cable that is is not known", false, r.name};
        const bool to_a_node = r.step > step_kind::alert && r.step != step_kind::avoid;
        if ((to_a_node || r.step == step_kind::tell) && !has_a_node(i))
            return {step_kind::alert, true, r.why + ", but there is no node to do it to", false, r.name};
        if (r.step >= step_kind::drain && is_told_of_a_job(i) && !needs_unfit(r))
            return {step_kind::alert, true,
                    r.why + ", but no node is taken out for what a job's programs tell of it", false, r.name};
        // Its last run is still being ended: there is no step to start again, and it waits for that already.
        if (is_for_jobs(r.step) && kind_of(i) == line_kind::stuck)
            return {step_kind::alert, true, r.why + ", but the job waits for this node already", false,
                    r.name};
        return {r.step, true, r.why, false, r.name, r.busy};
    }
    if (is_planned(i)) return {step_kind::none, true, planned, false, {}};
    return {step_kind::alert, true, "no rule is for it: a person should look", false, {}};
}

bool policy::asks_for_more(const incident& i, const incidents& known) const {
    // Of one on which nothing was decided yet there is nothing to note, or to ignore.
    const auto least = static_cast<std::uint8_t>(step_kind::none);
    return static_cast<std::uint8_t>(decide(i, known).step) > std::max(i.decided, least);
}

std::string advice_of(const decision& d, const std::string& node, bool dry_run) {
    if (dry_run && d.allowed && d.step == step_kind::avoid)
        return fmt::format("{}. Dry run: new jobs are placed as if it were well", d.why);
    if (dry_run && d.allowed && d.step == step_kind::sweep) return d.why + ". Dry run: it is not asked";
    if (dry_run && d.allowed && is_for_jobs(d.step)) return d.why + ". Dry run: its jobs are left alone";
    if (!dry_run || !d.allowed || d.step < step_kind::drain) return d.why;
    return fmt::format(
        "{}. Dry run: the node stays in. To take it out: scontrol update NodeName={} State={} Reason=...",
        d.why.substr(0, d.why.find(':')), node, d.step == step_kind::node_out ? "DOWN" : "DRAIN");
}

}  // namespace banyan::fault
