// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-fault policy check and explain: without the controller.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/file.hpp"
#include "common/text.hpp"
#include "fault/cli/commands.hpp"
#include "fault/cli/policy_source.hpp"
#include "fault/cli/terminal.hpp"
#include "fault/policy/review.hpp"

namespace banyan::fault {

using nlohmann::json;

namespace {

constexpr std::size_t width = 100, most_shown = 200;

json json_of(const policy_problem& p) {
    return {{"line", p.line},
            {"column", p.column},
            {"severity", p.warning ? "warning" : "error"},
            {"what", p.what},
            {"hint", p.hint}};
}

json json_of(const sample_names& names) {
    json out = json::object();
    for (const auto& [group, all] : names) out[group] = all;
    return out;
}

/// Who else may write the file says as well what is done: a warning, as of banyan.conf.
void judge_trust(const policy_text& from, std::vector<policy_problem>& out) {
    if (from.path.empty() || from.path == "-") return;
    if (const auto trusted = check_trusted(from.path); !trusted)
        out.push_back(
            {true, 1, 1, trusted.error().what, "whoever can write it decides what root's daemon does"});
}

int show_problems(const policy_text& from, const std::vector<policy_problem>& all, const policy* right,
                  bool as_json) {
    const auto errors = std::ranges::count(all, false, &policy_problem::warning);
    if (as_json) {
        json list = json::array();
        for (const auto& p : all) list.push_back(json_of(p));
        json out = {{"policy", from.source}, {"right", right != nullptr}, {"problems", std::move(list)}};
        out["rules"] = right ? json(right->rules().size()) : json();
        put(as_text(out, 1));
        return right ? 0 : 1;
    }
    for (std::size_t n = 0; n < std::min(all.size(), most_shown); ++n) show(all[n].text(from.source) + "\n");
    if (all.size() > most_shown) show(fmt::format("and {} more\n", all.size() - most_shown));
    const auto warnings = static_cast<std::ptrdiff_t>(all.size()) - errors;
    if (right)
        show(fmt::format("{} is right: {} rules, {} warnings\n", from.source, right->rules().size(),
                         warnings));
    else
        show(fmt::format("{} is wrong: {} errors\n", from.source, errors));
    return right ? 0 : 1;
}

json rule_json(const rule& r, const sample_names& decides) {
    return {{"name", r.name},           {"line", r.line},   {"action", name_of(r.step)},
            {"when", conditions_of(r)}, {"count", r.count}, {"jobs", r.jobs},
            {"within_ms", r.within_ms}, {"why", r.why},     {"decides", json_of(decides)}};
}

}  // namespace

int policy_check(const policy_call& call) {
    const auto from = find_policy(call);
    if (!from) return complain(from.error(), from.error().code == errc::invalid_input ? 2 : 3);
    auto read = parse_policy(from->source, from->text);
    if (read.rules)
        for (auto& warning : review(*read.rules).warnings) read.problems.push_back(std::move(warning));
    judge_trust(*from, read.problems);
    std::ranges::stable_sort(read.problems, {}, [](const auto& p) { return std::pair(p.line, p.column); });
    return show_problems(*from, read.problems, read.rules ? &*read.rules : nullptr, call.json);
}

int policy_explain(const policy_call& call) {
    const auto from = find_policy(call);
    if (!from) return complain(from.error(), from.error().code == errc::invalid_input ? 2 : 3);
    const auto p = right_policy(*from);
    if (!p) return complain(p.error(), 2);
    const auto all = review(*p);
    if (call.json) {
        json rules = json::array();
        for (std::size_t n = 0; n < p->rules().size(); ++n)
            rules.push_back(rule_json(p->rules()[n], all.decides[n]));
        json out = {{"policy", p->source()}, {"digest", p->digest()}, {"rules", std::move(rules)}};
        out["no_rule"] = json_of(all.undecided);
        put(as_text(out, 1));
        return 0;
    }
    std::string out = fmt::format("{} ({}): the first rule that matches decides\n\n{:>4}  {:<24} {:<6} {}\n",
                                  p->source(), p->digest(), "LINE", "RULE", "ACTION", "WHEN");
    for (const auto& r : p->rules())
        out += fmt::format("{:>4}  {:<24} {:<6} {}", r.line, cut(r.name, 24), name_of(r.step),
                           wrap(conditions_of(r), 38, width - 38));
    out += fmt::format("\n{:<24} {}\n", "RULE", "DECIDES, of lines that stand alone");
    for (std::size_t n = 0; n < p->rules().size(); ++n) {
        const auto what = all.decides[n].empty() ? "nothing" : text_of(all.decides[n]);
        out += fmt::format("{:<24} {}", cut(p->rules()[n].name, 24), wrap(what, 25, width - 25));
    }
    if (!all.undecided.empty())
        out += fmt::format("{:<24} {}", "(none: an alert)", wrap(text_of(all.undecided), 25, width - 25));
    show(out);
    return 0;
}

}  // namespace banyan::fault
