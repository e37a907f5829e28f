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
#include "fault/cli/commands.hpp"

namespace banyan::fault {

using nlohmann::json;

namespace {

std::string clock_text(std::int64_t ms, bool with_day) {
    if (ms <= 0) return "-";
    const std::time_t seconds = ms / 1000;
    std::tm local{};
    ::localtime_r(&seconds, &local);
    char text[32];
    std::strftime(text, sizeof text, with_day ? "%m-%d %H:%M:%S" : "%H:%M:%S", &local);
    return fmt::format("{}.{:03d}", text, ms % 1000);
}

std::string cut(std::string text, std::size_t width) {
    if (text.size() <= width) return text;
    text.resize(width - 1);
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.pop_back();
    return text + "~";
}

// Breaks `text` into lines of `width`, each but the first after `indent` blanks.
std::string wrap(std::string_view text, std::size_t indent, std::size_t width) {
    std::string out;
    while (text.size() > width) {
        auto at = text.rfind(' ', width);
        if (at == std::string_view::npos || at == 0) at = width;
        out += text.substr(0, at);
        out += '\n' + std::string(indent, ' ');
        text.remove_prefix(std::min(text.size(), at + (at < text.size() && text[at] == ' ' ? 1 : 0)));
    }
    return out.append(text) + '\n';
}

std::string object_text(const json& i) { return i.value("object", json::object()).value("text", "?"); }

std::string state_of(const json& i) {
    return i.value("times", json::object()).value("closed_ms", std::int64_t{0}) != 0 ? "closed"
                                                                                     : i.value("state", "?");
}

struct moment {
    std::int64_t at;
    std::string what;
};

std::vector<moment> moments_of(const json& i) {
    const auto times = i.value("times", json::object());
    std::vector<moment> out;
    for (const auto& e : i.value("evidence", json::array())) {
        auto text = fmt::format("{}: {}", e.value("source", "?"), e.value("text", ""));
        if (const auto more = e.value("repeats", std::uint64_t{0}))
            text += fmt::format(" (and {} more)", more);
        out.push_back({e.value("at_ms", std::int64_t{0}), std::move(text)});
    }
    out.push_back(
        {times.value("incident_ms", std::int64_t{0}), fmt::format("incident {} opened", i.value("id", "?"))});
    for (const auto& a : i.value("actions", json::array()))
        out.push_back(
            {a.value("at_ms", std::int64_t{0}),
             fmt::format("{} {}: {}", a.value("what", "?"), a.value("target", ""), a.value("result", ""))});
    if (const auto closed = times.value("closed_ms", std::int64_t{0}))
        out.push_back({closed, "closed by " + i.value("closed_by", "?")});
    std::ranges::stable_sort(out, {}, &moment::at);
    return out;
}

}  // namespace

std::string incident_header() {
    return fmt::format("{:<7} {:<18} {:<8} {:<7} {:<32} {}\n", "ID", "SINCE", "SEVERITY", "STATE", "OBJECT",
                       "CAUSE");
}

std::string incident_row(const json& i) {
    const auto since = i.value("times", json::object()).value("incident_ms", std::int64_t{0});
    return fmt::format("{:<7} {:<18} {:<8} {:<7} {:<32} {}\n", i.value("id", "?"), clock_text(since, true),
                       i.value("severity", "?"), state_of(i), cut(object_text(i), 32),
                       cut(i.value("cause", "?"), 23));
}

std::string incident_story(const json& i) {
    const auto times = i.value("times", json::object());
    const auto object = i.value("object", json::object());
    std::string out = fmt::format("{} {} {}\n", i.value("id", "?"), i.value("severity", "?"), state_of(i));
    const auto field = [&](const char* name, const std::string& text) {
        if (!text.empty()) out += fmt::format("  {:<9} {}", name, wrap(text, 12, 86));
    };
    field("object", object_text(i));
    field("uuid", object.value("uuid", ""));
    for (const auto& end : object.value("ends", json::array()))
        field("end", fmt::format("{} port {} ({})", end.value("name", "?"), end.value("port", 0),
                                 end.value("guid", "?")));
    field("cause", i.value("cause", ""));
    field("advice", i.value("advice", ""));
    field("page", fmt::format("{}/runbook/{}.md", doc_dir, i.value("reason", "")));
    if (const auto jobs = i.value("jobs", std::vector<std::uint64_t>{}); !jobs.empty())
        field("jobs", fmt::format("{}", fmt::join(jobs, ", ")));
    field("lines", fmt::format("{}", i.value("lines", std::uint64_t{0})));
    const auto start = times.value("line_ms", std::int64_t{0});
    out += fmt::format("\n  {:<18} {:>9}\n", "TIME", "MS");
    for (const auto& m : moments_of(i))
        out += fmt::format("  {:<18} {:>+9}  {}", clock_text(m.at, true), m.at - start, wrap(m.what, 31, 68));
    return out;
}

std::string agent_table(const json& agents) {
    auto out = fmt::format("{:<24} {:<10} {:<18} {:<18} {:>4} {:>7} {:>6} {:>7}\n", "NODE", "STATE",
                           "ADDRESS", "HEARD", "GPUS", "EVENTS", "QUEUED", "DROPPED");
    const auto number = [](const json& a, const char* key) { return a.value(key, std::uint64_t{0}); };
    for (const auto& a : agents)
        out += fmt::format("{:<24} {:<10} {:<18} {:<18} {:>4} {:>7} {:>6} {:>7}\n",
                           cut(a.value("node", "?"), 24), a.value("connected", false) ? "connected" : "away",
                           cut(a.value("address", ""), 18),
                           clock_text(a.value("heard_ms", std::int64_t{0}), true), number(a, "gpus"),
                           number(a, "events"), number(a, "queued"), number(a, "dropped"));
    return out;
}

std::string status_text(const json& s) {
    return fmt::format(
        "controller   running (pid {})\nmode         {}\nagents       {} of {} connected\nincidents    {} "
        "open\n"
        "taken out    {} nodes within the hour, at most {}\nbreaker      {}\nfabric log   {}\nhistory      "
        "{}\n",
        s.value("pid", 0), s.value("dry_run", true) ? "dry run: says what it would do" : "acting",
        s.value("agents_connected", 0), s.value("agents", 0), s.value("incidents_open", 0),
        s.value("taken_last_hour", 0), s.value("drains_per_hour", 0),
        s.value("breaker_open", false) ? "open: no node is taken out until banyan-fault reset-breaker"
                                       : "closed",
        s.value("opensm_log", "").empty() ? "not watched" : s.value("opensm_log", ""),
        s.value("history", ""));
}

}  // namespace banyan::fault
