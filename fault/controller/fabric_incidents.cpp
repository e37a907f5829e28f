// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/fabric_incidents.hpp"

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::fault {
namespace {

// They are no part of what a look at the fabric finds missing.
constexpr std::string_view manager_boot = "subnet-manager";

bool same(const object& a, const object& b) {
    return a.kind == b.kind && a.node == b.node && a.ends == b.ends;
}

object manager_object(const manager_id& who) {
    object out;
    out.kind = object_kind::manager;
    if (who.guid == 0) return out;  // none was ever seen
    out.node = who.text();
    // Its LID may be another one after a restart.
    out.ends = {{"", "subnet manager", 0, who.guid}};
    return out;
}

bool is_the(const incident& i, const manager_id& who) {
    return i.boot_id == manager_boot && i.closed_ms == 0 &&
           (i.object.ends.empty() || i.object.ends.front().guid == who.guid);
}

object ufm_object(const ufm_event& told) {
    object out;
    out.kind = told.port.empty() ? object_kind::sw : object_kind::link;
    out.node = told.node;
    out.ends = {
        {told.node, told.node + (told.port.empty() ? "" : " " + told.port), told.port_number(), told.guid}};
    return out;
}

}  // namespace

fabric_incidents::fabric_incidents(asio::io_context& io, asio::thread_pool& pool, const config& settings,
                                   records& known, cluster& slurm, hear to)
    : records_(known),
      window_ms_(settings.correlation_window.count()),
      hear_(std::move(to)),
      fabric_(io, pool, settings,
              {.looked = [this](fabric_news news) { after_look(std::move(news)); },
               .told = [this](const ufm_event& told, std::int64_t at) { after_told(told, at); },
               .manager =
                   [this](const opensm_event& line) {
                       spdlog::info("the subnet manager's log: {}", line.text);
                       manager_.ask_soon();
                   },
               .is_planned = [&slurm](const std::string& host) -> result<bool> {
                   BANYAN_TRY(const auto status, slurm.node(host));
                   return status.planned;
               }}),
      manager_(
          io, pool, settings, [this] { return fabric_.look_now(); },
          [this](const manager_news& news) { after_manager(news); }) {}

void fabric_incidents::start() {
    fabric_.start();
    if (fabric_.is_on()) manager_.start();
}

void fabric_incidents::closed_by_hand(const incident& i) {
    // What the fabric closed is there, or stands in another incident.
    if (i.boot_id == fabric_boot && !i.closed_by.starts_with(fabric_closes)) fabric_.give_up(i.object);
}

incident* fabric_incidents::open(incident made) {
    const auto now = clock::wall_ms();
    if (made.line_ms == 0) made.line_ms = now;
    made.add_seen(made.line_ms, 0);
    return &records_.incidents().open(std::move(made), now);
}

void fabric_incidents::close(incident& i, std::string by) {
    i.closed_ms = clock::wall_ms();
    i.closed_by = std::move(by);
    i.state = incident_state::done;
    records_.say(i, fmt::format(" closed by {}: {}", i.closed_by, i.object.text()));
    records_.save_soon(i.number);
}

void fabric_incidents::note(incident& i, std::string source, std::string text, std::int64_t at_ms) {
    i.last_ms = std::max(i.last_ms, at_ms);
    i.add_evidence({at_ms, std::move(source), std::move(text), 0});
    records_.save_soon(i.number);
}

incident* fabric_incidents::recent(std::string_view boot, const object& culprit) {
    const auto now = clock::wall_ms();
    const auto& all = records_.incidents().all();
    for (auto it = all.rbegin(); it != all.rend(); ++it) {
        const auto& i = it->second;
        if (i.boot_id != boot || !same(i.object, culprit)) continue;
        if (i.closed_ms == 0 || now - i.closed_ms <= flaps_within_ms)
            return records_.incidents().find(it->first);
    }
    return nullptr;
}

// One physical fault is one incident: what is open, or was a short while ago, counts once more.
incident* fabric_incidents::again_or_new(incident made) {
    auto* i = recent(made.boot_id, made.object);
    if (!i) {
        i = open(std::move(made));
        hear_(i->number, change::first);
        return i;
    }
    if (i->closed_ms != 0) {
        i->closed_ms = 0;
        i->closed_by.clear();
        ++i->flaps;
    }
    i->cause = std::move(made.cause);
    i->severity = made.severity;
    i->add_seen(clock::wall_ms(), 0);
    records_.say(*i, fmt::format(": {} again, {} times so far", i->object.text(), i->seen.size()));
    hear_(i->number, change::again);
    return i;
}

void fabric_incidents::after_look(fabric_news news) {
    const auto seen = [&news](const object& o) { return news.seen->has(o); };
    const auto steps =
        plan_for(records_.incidents().all(), news.missing, news.passing, seen, clock::wall_ms());
    for (const auto& step : steps) apply(step, news);
}

void fabric_incidents::apply(const fabric_step& step, const fabric_news& news) {
    using kind = fabric_step::kind;
    const auto now = clock::wall_ms();
    incident made;
    if (step.what == kind::open) {
        made.boot_id = fabric_boot;
        made.line_ms = news.line_ms;
    }
    auto* i = step.what == kind::open ? &made : records_.incidents().find(step.number);
    if (!i) return;
    for (const auto& line : news.evidence) i->add_evidence(line);
    if (step.what == kind::close) {
        if (!step.fault.cause.empty()) i->cause = step.fault.cause;
        return close(*i, step.words);
    }
    if (step.what == kind::part) {
        i->cause = step.words;
        records_.say(*i, ": " + i->cause);
        return records_.save_soon(i->number);
    }
    const bool fresh = step.what != kind::again;
    i->object = step.fault.object;
    i->reason = step.fault.reason;
    i->cause = step.fault.cause;
    i->severity = step.fault.how_bad;
    if (step.what == kind::open) {
        i = open(std::move(made));
    } else {
        i->closed_ms = 0;
        i->closed_by.clear();
        i->last_ms = std::max(i->last_ms, now);
        if (!fresh) {
            ++i->flaps;
            i->add_seen(now, 0);
        }
        records_.say(*i, fmt::format(": {}{}", i->cause,
                                     fresh ? "" : fmt::format(", again; {} times so far", i->flaps)));
    }
    hear_(i->number, step.what == kind::open ? change::first : fresh ? change::worse : change::again);
    if (step.back) close(*i, std::string(fabric_was_back));
}

void fabric_incidents::after_manager(const manager_news& news) {
    const auto now = clock::wall_ms();
    std::vector<std::uint64_t> well, gone;
    const auto& master = news.what == manager_news::kind::replaced ? news.next : news.who;
    for (const auto& [number, i] : records_.incidents().all()) {
        if (news.what != manager_news::kind::silent && is_the(i, master))
            well.push_back(number);
        else if (news.what == manager_news::kind::replaced && is_the(i, news.who))
            gone.push_back(number);
    }
    for (const auto number : well) {
        auto* i = records_.incidents().find(number);
        note(*i, "sminfo", news.words, now);
        close(*i, std::string(fabric_manager_answers));
    }
    if (news.what == manager_news::kind::master) return;
    incident made;
    made.object = manager_object(news.who);
    made.reason = manager_reason;
    made.boot_id = manager_boot;
    made.line_ms = now;
    if (news.what == manager_news::kind::silent) {
        made.severity = severity::error;
        made.cause = news.who.guid == 0
                         ? "no subnet manager answers"
                         : fmt::format("the subnet manager at {} does not answer, and no other took over",
                                       news.who.text());
        note(*again_or_new(std::move(made)), "sminfo", news.words, now);
        return;
    }
    made.severity = severity::warning;
    made.cause = fmt::format("the subnet manager at {} is no master any more: {} is", news.who.text(),
                             news.next.text());
    if (gone.empty()) {
        note(*again_or_new(std::move(made)), "sminfo", news.words, now);
        return;
    }
    auto* i = records_.incidents().find(gone.front());
    i->cause = std::move(made.cause);
    i->severity = made.severity;
    note(*i, "sminfo", news.words, now);
    hear_(i->number, change::again);
}

void fabric_incidents::after_told(const ufm_event& told, std::int64_t line_ms) {
    incident made;
    made.object = ufm_object(told);
    made.reason = "fabric-errors";
    made.boot_id = told_by_ufm;
    made.severity = severity::warning;
    made.line_ms = line_ms;
    made.cause =
        fmt::format("UFM: {} at {}{}", told.kind, told.node, told.port.empty() ? "" : " " + told.port);
    const auto text = printable(told.text);
    auto* i = recent(told_by_ufm, made.object);
    // A counter's event comes every few minutes for as long as it rises.
    if (i && i->closed_ms == 0) {
        i->add_seen(line_ms, window_ms_);
        note(*i, "ufm", text, line_ms);
        return hear_(i->number, change::again);
    }
    note(*again_or_new(std::move(made)), "ufm", text, line_ms);
}

}  // namespace banyan::fault
