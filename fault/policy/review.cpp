// SPDX-License-Identifier: BSD-3-Clause
#include "fault/policy/review.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.hpp"
#include "fault/incident/job_rules.hpp"
#include "fault/policy/samples.hpp"

namespace banyan::fault {
namespace {

constexpr std::size_t most_examples = 5;

void add(sample_names& to, const policy_sample& s) {
    if (to.empty() || to.back().first != s.group) {
        const auto known = std::ranges::find(to, s.group, &sample_names::value_type::first);
        if (known == to.end())
            to.push_back({s.group, {}});
        else
            std::rotate(known, std::next(known), to.end());
    }
    auto& names = to.back().second;
    if (std::ranges::find(names, s.name) == names.end()) names.push_back(s.name);
}

/// What became of the samples that a rule matches.
struct fate {
    bool matches = false;
    std::set<std::size_t> before;                         // rules that took what it matches
    sample_names jobs, told, no_nodes, no_cables, stuck;  // that it decides and should not, or cannot
};

class reviewer {
  public:
    explicit reviewer(const policy& p) : policy_(p), fates_(p.rules().size()) {
        out_.decides.resize(p.rules().size());
    }
    policy_review run() {
        for (const auto& s : samples_for(policy_)) judge(s);
        for (std::size_t n = 0; n < fates_.size(); ++n) warn(n);
        warn_of_sweeps();
        if (!out_.undecided.empty())
            out_.warnings.push_back({true, 1, 1,
                                     fmt::format("no rule is for {}", text_of(out_.undecided, most_examples)),
                                     "that is an alert; a last rule without conditions is for all the rest"});
        return std::move(out_);
    }

  private:
    void judge(const policy_sample& s) {
        std::optional<std::size_t> decided;
        for (std::size_t n = 0; n < policy_.rules().size(); ++n) {
            const auto& r = policy_.rules()[n];
            auto what = s.what;
            // Nothing was swept yet where nothing has happened.
            if (!r.when.swept.empty()) what.swept = r.when.swept.front();
            if (!r.when.match(what)) continue;
            fates_[n].matches = true;
            if (decided)
                fates_[n].before.insert(*decided);
            else
                take(n, s);
            if (!decided && r.within_ms == 0 && r.when.swept.empty()) decided = n;
        }
        if (!decided) add(out_.undecided, s);
    }
    void take(std::size_t n, const policy_sample& s) {
        add(out_.decides[n], s);
        const auto step = policy_.rules()[n].step;
        // No user brings it about that a sweep finds the node unfit.
        const auto& swept = policy_.rules()[n].when.swept;
        const bool unfit = needs_unfit(policy_.rules()[n]);
        const bool told = is_told_of_a_job(s.what);
        if (step >= step_kind::drain && !unfit && told) add(fates_[n].told, s);
        if (step >= step_kind::drain && !unfit && !told &&
            s.what.root_precedence == static_cast<std::uint8_t>(precedence::app))
            add(fates_[n].jobs, s);
        if (is_for_jobs(step) && kind_of(s.what) == line_kind::stuck) add(fates_[n].stuck, s);
        if (step == step_kind::avoid) {
            if (!has_a_cable(s.what)) add(fates_[n].no_cables, s);
        } else if ((step > step_kind::alert || step == step_kind::tell) && swept.empty() &&
                   !has_a_node(s.what)) {  // nothing but nodes is swept
            add(fates_[n].no_nodes, s);
        }
    }
    void warn(std::size_t n, std::string what, std::string hint) {
        const auto& r = policy_.rules()[n];
        out_.warnings.push_back(
            {true, r.line, r.column, fmt::format("rule \"{}\": {}", r.name, what), std::move(hint)});
    }
    void warn_of_sweeps() {
        const auto& all = policy_.rules();
        if (std::ranges::find(all, step_kind::sweep, &rule::step) != all.end()) return;
        for (std::size_t n = 0; n < all.size(); ++n)
            if (!all[n].when.swept.empty())
                warn(n, "no rule asks for a sweep, so none is ever swept", "action = \"sweep\" does");
    }
    void warn(std::size_t n) {
        const auto& f = fates_[n];
        if (!f.matches) {
            warn(n, "it is for nothing that banyan knows", "do its conditions exclude each other?");
        } else if (out_.decides[n].empty()) {
            const auto& first = policy_.rules()[*f.before.begin()];
            warn(n, "it never decides: others before it take all that it is for",
                 fmt::format("put it before rule \"{}\" of line {}{}", first.name, first.line,
                             f.before.size() > 1 ? fmt::format(", and {} more", f.before.size() - 1) : ""));
        }
        if (!f.jobs.empty())
            warn(n,
                 fmt::format("it takes nodes out for what accuses the application ({})",
                             text_of(f.jobs, most_examples)),
                 "users can bring that about as they like; no shipped rule does it");
        if (!f.told.empty())
            warn(n,
                 fmt::format("it is also for what a job's programs tell of it ({})",
                             text_of(f.told, most_examples)),
                 "that stays an alert: no node is taken out for it");
        if (!f.stuck.empty())
            warn(n,
                 fmt::format("it is also for {}, whose job waits already", text_of(f.stuck, most_examples)),
                 "that stays an alert; action = \"down\" lets the job go on");
        if (!f.no_nodes.empty())
            warn(n, fmt::format("it is also for {}, which is no node", text_of(f.no_nodes, most_examples)),
                 "that stays an alert");
        if (!f.no_cables.empty())
            warn(n, fmt::format("it is also for {}, which is no cable", text_of(f.no_cables, most_examples)),
                 "that stays an alert; object = [\"link\", \"hca\"] and kind = \"fabric\" name cables");
    }

    const policy& policy_;
    std::vector<fate> fates_;
    policy_review out_;
};

// Neighbours in the list are folded where they are neighbours as numbers.
std::vector<std::string> folded(const std::vector<std::string>& names) {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < names.size();) {
        auto end = at + 1;
        auto last = parse_number(names[at]);
        while (last && end < names.size() && parse_number(names[end]).value_or(0) == *last + 1)
            ++*last, ++end;
        out.push_back(end - at > 2 ? names[at] + "-" + names[end - 1] : names[at]);
        if (end - at == 2) out.push_back(names[end - 1]);
        at = end;
    }
    return out;
}

template <class T>
void condition(std::vector<std::string>& out, std::string_view key, const std::vector<T>& values, auto name) {
    if (values.empty()) return;
    std::vector<std::string> words;
    for (const auto& value : values) words.emplace_back(name(value));
    out.push_back(fmt::format("{} = {}", key, fmt::join(words, " or ")));
}

std::string time_text(std::int64_t ms) {
    constexpr std::int64_t minute = 60'000, hour = 60 * minute;
    return ms % hour == 0     ? fmt::format("{}h", ms / hour)
           : ms % minute == 0 ? fmt::format("{}m", ms / minute)
                              : fmt::format("{}s", ms / 1000);
}

}  // namespace

policy_review review(const policy& p) { return reviewer(p).run(); }

std::string text_of(const sample_names& names, std::size_t most) {
    std::vector<std::string> out;
    for (const auto& [group, all] : names) {
        auto some = folded(all);
        const auto more = some.size() > most ? some.size() - most : 0;
        some.resize(some.size() - more);
        out.push_back(fmt::format("{} {}{}", group, fmt::join(some, ", "),
                                  more ? fmt::format(" and {} more", more) : ""));
    }
    return fmt::format("{}", fmt::join(out, "; "));
}

std::string conditions_of(const rule& r) {
    const auto word = [](auto words) {
        return [words](auto value) { return words[static_cast<std::size_t>(value)]; };
    };
    const auto same = [](const std::string& text) { return text; };
    const auto range = [](const number_range& n) {
        return n.first == n.last ? std::to_string(n.first) : fmt::format("{}-{}", n.first, n.last);
    };
    std::vector<std::string> out;
    condition(out, "kind", r.when.kinds, word(kind_words()));
    condition(out, "class", r.when.classes, word(class_words()));
    condition(out, "object", r.when.objects, word(object_words()));
    condition(out, "reason", r.when.reasons, same);
    condition(out, "severity", r.when.severities, word(severity_words()));
    condition(out, "xid", r.when.xids, range);
    condition(out, "sxid", r.when.sxids, range);
    condition(out, "symptom", r.when.symptoms, same);
    condition(out, "part", r.when.parts, word(part_words()));
    condition(out, "swept", r.when.swept, same);
    auto text = out.empty() ? "always" : fmt::format("{}", fmt::join(out, ", "));
    if (r.count > 1) text += fmt::format("; {} times within {}", r.count, time_text(r.within_ms));
    if (r.jobs > 1) text += fmt::format("; of {} jobs within {}", r.jobs, time_text(r.within_ms));
    return text;
}

}  // namespace banyan::fault
