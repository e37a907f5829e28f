// SPDX-License-Identifier: BSD-3-Clause
//
// How banyan-fault shows what the controller said. Lines stay within 100 columns.
#include <algorithm>
#include <ctime>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/build_info.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"
#include "fault/cli/commands.hpp"
#include "fault/cli/terminal.hpp"
#include "fault/neighbours.hpp"

namespace banyan::fault {

namespace {

/// As in the daemons' logs, and as --since takes it.
std::string clock_text(std::int64_t ms) {
    if (ms <= 0) return "-";
    const std::time_t seconds = ms / 1000;
    std::tm local{};
    ::localtime_r(&seconds, &local);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &local);
    return text;
}

// The controller may be of another release: what is missing, or not as expected, is shown as unknown.

std::string text_in(const json_fields& in, const char* key, const char* unknown = "?") {
    return in.text(key, SIZE_MAX).value_or(unknown);
}

std::uint64_t count_in(const json_fields& in, const char* key) { return in.number(key).value_or(0); }

std::int64_t time_in(const json_fields& in, const char* key) {
    constexpr std::int64_t most = 1ll << 52;  // ms: differences of two stay numbers
    return in.integer(key, -most, most).value_or(0);
}

json_fields part_of(const json_fields& in, const char* key) {
    static const auto nothing = nlohmann::json::object();
    return in.object(key).value_or(json_fields(nothing));
}

std::vector<json_fields> list_in(const json_fields& in, const char* key) {
    return in.list(key).value_or(std::vector<json_fields>());
}

std::string object_text(const json_fields& i) { return text_in(part_of(i, "object"), "text"); }

std::string state_of(const json_fields& i) {
    const auto times = part_of(i, "times");
    if (time_in(times, "avoid_ms") != 0) return "avoided";
    return time_in(times, "closed_ms") != 0 ? "closed" : text_in(i, "state");
}

struct moment {
    std::int64_t at;
    std::string what;
};

std::vector<moment> moments_of(const json_fields& i) {
    const auto times = part_of(i, "times");
    std::vector<moment> out;
    for (const auto& e : list_in(i, "evidence")) {
        auto text = fmt::format("{}: {}", text_in(e, "source"), text_in(e, "text", ""));
        if (const auto more = count_in(e, "repeats")) text += fmt::format(" (and {} more)", more);
        out.push_back({time_in(e, "at_ms"), std::move(text)});
    }
    out.push_back({time_in(times, "incident_ms"), fmt::format("incident {} opened", text_in(i, "id"))});
    for (const auto& a : list_in(i, "actions"))
        out.push_back({time_in(a, "at_ms"), fmt::format("{} {}: {}", text_in(a, "what"),
                                                        text_in(a, "target", ""), text_in(a, "result", ""))});
    if (const auto closed = time_in(times, "closed_ms"))
        out.push_back({closed, "closed by " + text_in(i, "closed_by")});
    std::ranges::stable_sort(out, {}, &moment::at);
    return out;
}

}  // namespace

std::string incident_header() {
    return fmt::format("{:<7} {:<19} {:<8} {:<7} {:<32} {}\n", "ID", "SINCE", "SEVERITY", "STATE", "OBJECT",
                       "CAUSE");
}

std::string incident_row(const json_fields& i) {
    const auto since = time_in(part_of(i, "times"), "incident_ms");
    return fmt::format("{:<7} {:<19} {:<8} {:<7} {:<32} {}\n", text_in(i, "id"), clock_text(since),
                       text_in(i, "severity"), state_of(i), cut(object_text(i), 32),
                       cut(text_in(i, "cause"), 22));
}

std::string incident_story(const json_fields& i) {
    const auto times = part_of(i, "times"), object = part_of(i, "object");
    std::string out = fmt::format("{} {} {}\n", text_in(i, "id"), text_in(i, "severity"), state_of(i));
    const auto field = [&](const char* name, const std::string& text) {
        if (!text.empty()) out += fmt::format("  {:<9} {}", name, wrap(text, 12, 86));
    };
    field("object", object_text(i));
    field("uuid", text_in(object, "uuid", ""));
    field("serial", text_in(object, "serial", ""));
    for (const auto& end : list_in(object, "ends"))
        field("end",
              fmt::format("{}{} ({})", text_in(end, "name"),
                          count_in(end, "port") != 0 ? fmt::format(" port {}", count_in(end, "port")) : "",
                          text_in(end, "guid")));
    field("cause", text_in(i, "cause", ""));
    if (const auto sure = part_of(i, "confidence"); sure.has("level"))
        field("sure", fmt::format("{}: {}", text_in(sure, "level"), text_in(sure, "why", "")));
    field("advice", text_in(i, "advice", ""));
    field("rule", text_in(i, "rule", ""));
    field("page", fmt::format("{}/runbook/{}.md", doc_dir, text_in(i, "reason", "")));
    if (const auto jobs = i.numbers<std::uint64_t>("jobs", SIZE_MAX); jobs && !jobs->empty())
        field("jobs", fmt::format("{}", fmt::join(*jobs, ", ")));
    for (const auto& r : list_in(i, "ranks"))
        field("ranks",
              r.has("unknown")
                  ? fmt::format("of job {}: not known, {}", count_in(r, "job"), text_in(r, "unknown"))
                  : fmt::format("{} of the {} of job {} were on the node (step {})", text_in(r, "ranks"),
                                count_in(r, "of"), count_in(r, "job"), count_in(r, "step")));
    field("lines", fmt::format("{}", count_in(i, "lines")));
    if (const auto flaps = count_in(i, "flaps")) field("flaps", fmt::format("broke again {} times", flaps));
    if (const auto since = time_in(times, "avoid_ms"))
        field("avoided", fmt::format("new jobs are kept off this cable since {}", clock_text(since)));
    if (const auto* told = i.find("place"))
        if (const auto place = neighbours_from(*told)) field("place", printable(place->text()));
    if (const auto domain = text_in(i, "nvlink_domain", ""); !domain.empty()) {
        const auto nodes = i.texts("nvlink_nodes", incident::max_shown);
        const bool several = nodes && nodes->size() > 1;
        field("nvlinks",
              several ? fmt::format("domain {}, told of by {}", domain, printable(compress_hostlist(*nodes)))
                      : "domain " + domain);
    }
    const auto start = time_in(times, "line_ms");
    out += fmt::format("\n  {:<19} {:>9}\n", "TIME", "MS");
    for (const auto& m : moments_of(i))
        out += fmt::format("  {:<19} {:>+9}  {}", clock_text(m.at), m.at - start, wrap(m.what, 32, 67));
    return out;
}

std::string agent_table(const std::vector<json_fields>& agents) {
    auto out = fmt::format("{:<24} {:<10} {:<18} {:<19} {:>4} {:>7} {:>6} {:>7} {:>6}\n", "NODE", "STATE",
                           "ADDRESS", "HEARD", "GPUS", "EVENTS", "QUEUED", "DROPPED", "LOST");
    for (const auto& a : agents)
        out += fmt::format(
            "{:<24} {:<10} {:<18} {:<19} {:>4} {:>7} {:>6} {:>7} {:>6}\n", cut(text_in(a, "node"), 24),
            a.flag("connected").value_or(false) ? "connected" : "away", cut(text_in(a, "address", ""), 18),
            clock_text(time_in(a, "heard_ms")), count_in(a, "gpus"), count_in(a, "events"),
            count_in(a, "queued"), count_in(a, "dropped"), count_in(a, "lost"));
    return out;
}

std::string nvlink_domain_lines(const std::vector<json_fields>& agents) {
    std::string out;
    for (const auto& a : agents) {
        if (!a.has("nvlink_domain")) continue;
        const auto domain = text_in(a, "nvlink_domain", "");
        out += fmt::format("{} {}\n", text_in(a, "node"), domain.empty() ? "-" : domain);
    }
    return out;
}

std::string status_text(const json_fields& s) {
    const auto log = text_in(s, "opensm_log", "");
    return fmt::format(
        "controller   running (pid {})\nmode         {}\nagents       {} of {} connected\nincidents    {} "
        "open\n"
        "taken out    {} nodes within the hour, at most {}\nkept off     {} links\nbreaker      {}\npolicy   "
        "    {}, {} rules ({})\n"
        "fabric log   {}\nhistory      {}\n",
        count_in(s, "pid"), s.flag("dry_run").value_or(true) ? "dry run: says what it would do" : "acting",
        count_in(s, "agents_connected"), count_in(s, "agents"), count_in(s, "incidents_open"),
        count_in(s, "taken_last_hour"), count_in(s, "drains_per_hour"), count_in(s, "avoided_links"),
        s.flag("breaker_open").value_or(false) ? "open: no node is taken out until banyan-fault reset-breaker"
                                               : "closed",
        text_in(s, "policy"), count_in(s, "policy_rules"), text_in(s, "policy_digest"),
        log.empty() ? "not watched" : log, text_in(s, "history", ""));
}

}  // namespace banyan::fault
