// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-fault policy test: a log, or incidents, through a policy.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "fault/cli/commands.hpp"
#include "fault/cli/log_time.hpp"
#include "fault/cli/policy_source.hpp"
#include "fault/cli/terminal.hpp"
#include "fault/config.hpp"
#include "fault/parse/any_log.hpp"
#include "fault/policy/trial.hpp"

namespace banyan::fault {

using nlohmann::json;

namespace {

constexpr std::size_t longest_line = 1 << 20, most_json = 64 << 20;

/// Feeds what it reads to a trial: lines of a log, or, where the first line begins one, incidents as JSON.
class feeder {
  public:
    feeder(policy_trial& to, log_format format) : trial_(to), log_(format) {}

    void line(std::string_view text);
    /// Those of JSON are read when all of it is there.
    result<void> finish();
    void tell(std::uint64_t cut) const;

  private:
    enum class mode : std::uint8_t { undecided, log, incidents };
    static bool begins_incidents(std::string_view text);
    void take(const reading& r);
    result<void> take_incident(const json& j);

    policy_trial& trial_;
    any_log log_;
    mode mode_ = mode::undecided;
    std::string json_;
    std::uint64_t position_ = 0, without_time_ = 0, others_ = 0;
    std::int64_t last_ms_ = 0;
};

// A log's JSON is one object a line, and has no culprit.
bool feeder::begins_incidents(std::string_view text) {
    if (text == "{" || text.starts_with('[')) return text.find("] ") == std::string_view::npos;
    const auto parsed = text.starts_with('{') ? json::parse(text, nullptr, false) : json();
    return parsed.is_object() && parsed.contains("object") && parsed.contains("reason");
}

void feeder::line(std::string_view text) {
    if (mode_ == mode::undecided && !trim(text).empty())
        mode_ = begins_incidents(trim(text)) ? mode::incidents : mode::log;
    if (mode_ == mode::incidents && json_.size() < most_json) json_.append(text) += '\n';
    if (mode_ == mode::log) log_.line(text, [this](const reading& r) { take(r); });
}

void feeder::take(const reading& r) {
    if (!r.fault) {
        ++others_;
        return;
    }
    event e;
    e.node = r.node.empty() ? "localhost" : r.node;
    e.boot_id = "log";
    e.position = ++position_;
    const auto at = log_time_ms(r.time);
    if (!at) ++without_time_;
    e.line_ms = last_ms_ = std::max<std::int64_t>(1, at.value_or(last_ms_));
    e.fault = *r.fault;
    e.text = r.text;
    trial_.take(e);
}

result<void> feeder::take_incident(const json& j) {
    BANYAN_TRY(auto one, incident_from(j));
    trial_.take(std::move(one));
    return {};
}

result<void> feeder::finish() {
    if (mode_ != mode::incidents) return {};
    const auto whole = json::parse(json_, nullptr, false);
    if (whole.is_array()) {
        for (const auto& one : whole) BANYAN_CHECK(take_incident(one));
        return {};
    }
    if (!whole.is_discarded()) return take_incident(whole);
    for (const auto one : split(json_, '\n'))
        if (!trim(one).empty()) BANYAN_CHECK(take_incident(json::parse(one, nullptr, false)));
    return {};
}

void feeder::tell(std::uint64_t cut) const {
    if (mode_ == mode::incidents) return;
    fault::tell(log_, cut);
    std::string text;
    if (others_ > 0)
        text += fmt::format("banyan-fault: {} events are not of the kernel: no rule is asked about them\n",
                            others_);
    if (without_time_ > 0)
        text +=
            fmt::format("banyan-fault: {} events have no time that is known: taken as of the one before\n",
                        without_time_);
    if (trial_.forgotten() > 0)
        text += fmt::format("banyan-fault: {} incidents before those are not shown\n", trial_.forgotten());
    std::fputs(text.c_str(), stderr);
}

std::string table_of(const policy_trial& trial) {
    auto out = fmt::format("{:<7} {:<6} {:<24} {:<30} {}\n", "ID", "ACTION", "RULE", "OBJECT", "CAUSE");
    for (const auto& [number, i] : trial.incidents().all()) {
        const auto& last = trial.judgements(number).back().what;
        out += fmt::format("{:<7} {:<6} {:<24} {:<30} {}\n", i.id(), name_of(last.step),
                           cut(last.rule.empty() ? "(none)" : last.rule, 24), cut(i.object.text(), 30),
                           cut(i.cause, 29));
    }
    return out;
}

json json_of(const policy& rules, const policy_trial& trial) {
    json list = json::array();
    for (const auto& [number, i] : trial.incidents().all()) {
        auto one = to_json(i, false);
        json decisions = json::array();
        for (const auto& [at, what] : trial.judgements(number))
            decisions.push_back(
                {{"at_ms", at}, {"action", name_of(what.step)}, {"rule", what.rule}, {"why", what.why}});
        one["action"] = decisions.back()["action"];
        one["decisions"] = std::move(decisions);
        list.push_back(std::move(one));
    }
    return {{"policy", rules.source()}, {"digest", rules.digest()}, {"incidents", std::move(list)}};
}

}  // namespace

int policy_test(const policy_call& call, const std::string& log, const std::string& format) {
    const auto wanted = log_format_from(format);
    if (!wanted) return complain(wanted.error(), 2);
    const auto settings = load_config(call.config, {});
    if (!settings) return complain(settings.error(), 2);
    const auto from = find_policy(call);
    if (!from) return complain(from.error(), 3);
    const auto rules = right_policy(*from);
    if (!rules) return complain(rules.error(), 2);
    policy_trial trial(*rules, settings->correlation_window.count());
    feeder feed(trial, *wanted);
    const auto cut = read_lines(log, longest_line, [&](std::string_view line) { feed.line(line); });
    if (!cut) return complain(cut.error(), 3);
    if (const auto read = feed.finish(); !read) return complain(read.error(), 3);
    if (call.json)
        put(as_text(json_of(*rules, trial), 1));
    else if (trial.incidents().all().empty())
        show("no incidents\n");
    else
        show(table_of(trial));
    feed.tell(*cut);
    return 0;
}

}  // namespace banyan::fault
