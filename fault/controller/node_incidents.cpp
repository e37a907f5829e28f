// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/node_incidents.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/text.hpp"
#include "fault/incident/nvlink_rules.hpp"
#include "fault/incident/relations.hpp"
#include "fault/net/protocol.hpp"
#include "fault/sources/log_line.hpp"

namespace banyan::fault {
namespace {

bool is_open(const incident& i, const std::string& node, std::string_view reason) {
    return i.object.node == node && i.closed_ms == 0 && i.reason == reason;
}

}  // namespace

std::optional<std::string> no_longer_stuck(const incident& i, const std::vector<job_status>& jobs,
                                           std::int64_t since_ms) {
    if (i.closed_ms != 0) return "closed by " + i.closed_by;
    if (i.line_ms < since_ms)
        return "an earlier controller found it: where the job is still held up, that is looked at anew";
    const auto found_ms = std::max(i.line_ms, i.last_ms);
    for (const auto& job : jobs)
        if (std::ranges::find(i.jobs, job.id) != i.jobs.end() && job.start_time * 1000 <= found_ms)
            return std::nullopt;
    return "no job has the node any more of those that it held up: it has ended their last run since";
}

incident node_incidents::made(const std::string& node, std::string_view reason, std::string cause) const {
    incident out;
    out.object.kind = object_kind::node;
    out.object.node = node;
    out.reason = reason;
    out.cause = std::move(cause);
    out.severity = severity::fatal;
    out.boot_id = calls_.boot_of(node);
    out.root_precedence = static_cast<std::uint8_t>(precedence::node_out);
    out.line_ms = clock::wall_ms();
    return out;
}

void node_incidents::open(incident i) {
    const auto now = i.line_ms;
    const auto number = records_.incidents().open(std::move(i), now).number;
    const auto folded = records_.incidents().fold_links(number);
    if (calls_.folded) calls_.folded(folded);
    calls_.hear(number, change::first);
}

void node_incidents::silent(const std::string& node, const std::string& words) {
    for (const auto& [number, i] : records_.incidents().all()) {
        if (!is_open(i, node, silent_reason)) continue;
        records_.incidents().find(number)->add_evidence({clock::wall_ms(), node, words, 0});
        return calls_.hear(number, change::again);
    }
    auto i = made(node, silent_reason, fmt::format("{} does not answer", node));
    if (calls_.nvlink_domain_of) i.nvlink_domain = calls_.nvlink_domain_of(node);
    i.own_fault = true;
    i.add_evidence({i.line_ms, node, words, 0});
    open(std::move(i));
}

std::vector<std::pair<std::string, std::vector<std::string>>> node_incidents::lost_ports(
    const std::string& node) const {
    std::vector<std::pair<std::string, std::vector<std::string>>> out;
    for (const auto& [number, i] : records_.incidents().all())
        if (i.object.node == node && i.closed_ms == 0 && lost_a_port(i) && out.size() < max_lost_cards)
            out.emplace_back(i.object.device, i.ports);
    return out;
}

void node_incidents::back(const std::string& node) {
    std::vector<std::uint64_t> unexplained;
    for (const auto& [number, i] : records_.incidents().all()) {
        if (!is_open(i, node, silent_reason)) continue;
        auto* found = records_.incidents().find(number);
        found->closed_ms = clock::wall_ms();
        found->closed_by = "the node: its agent is back";
        records_.save_soon(number);
        if (i.boot_id != calls_.boot_of(node)) continue;
        // It was never down: what its domain told of links is no evidence of that.
        const auto by = folded_into(i);
        for (const auto& [other, o] : records_.incidents().all())
            if (was_folded(o) && o.closed_by == by) unexplained.push_back(other);
    }
    for (const auto number : unexplained) {
        auto* found = records_.incidents().find(number);
        found->closed_ms = 0;
        found->closed_by.clear();
        records_.say(*found, fmt::format(": open again, since {} was not down", node));
        calls_.hear(number, change::worse);
    }
}

void node_incidents::held_up(std::uint64_t number, const job_status& job, const holders& found) {
    const auto* recovered = records_.incidents().find(number);
    if (!recovered) return;
    const auto id = recovered->id(), where = compress_hostlist(found.where), target = std::to_string(job.id);
    const auto known_by = found.known_by.empty() ? "" : fmt::format(" ({})", found.known_by);
    if (found.where.empty())
        return records_.record(number, "holders", target,
                               "which nodes have not ended its last run is not known: " + found.why_not,
                               false);
    const auto count = found.where.size();
    const auto of = found.asked != 0 ? fmt::format("of the {} nodes asked", found.asked)
                                     : fmt::format("of its {} nodes", job.nodes.size());
    const char* const have = count == 1 ? "has" : "have";
    if (!found.taken_out)
        return records_.record(
            number, "holders", target,
            fmt::format("{}, {} {}, {} not ended its last run{}, and it waits for that. {}: "
                        "look there for processes that do not end",
                        where, count, of, have, known_by, found.why_not),
            false);
    records_.record(number, "holders", target,
                    fmt::format("waits for {}, which {} not ended its last run{}", where, have, known_by),
                    true);
    for (const auto& node : found.where)
        stuck(node, job,
              fmt::format("{} {} {} not ended the last run of job {}{}, all others asked have; the job is "
                          "recovered from incident {}",
                          count, of, have, job.id, known_by, id));
}

void node_incidents::stuck(const std::string& node, const job_status& job, const std::string& words) {
    const auto now = clock::wall_ms();
    const auto cause = fmt::format("{} has not ended the last run of job {}", node, job.id);
    for (const auto& [number, i] : records_.incidents().all()) {
        if (!is_open(i, node, stuck_reason)) continue;
        auto* found = records_.incidents().find(number);
        if (i.node_out_ms == 0) {  // no rule is for it, or it is being acted on
            found->add_evidence({now, node, words, 0});
            found->line_ms = found->last_ms = now;  // seen at this moment, whenever it began
            found->cause = cause;
            found->jobs = {job.id};
            return calls_.hear(number, change::worse);
        }
        found->closed_ms = now;
        found->closed_by = "the node: it was back, and had another job";
        records_.save_soon(number);
    }
    auto i = made(node, stuck_reason, cause);
    i.jobs = {job.id};
    i.add_evidence({now, node, words, 0});
    open(std::move(i));
}

}  // namespace banyan::fault
