// SPDX-License-Identifier: BSD-3-Clause
#include "fault/policy/rule_reader.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.hpp"
#include "fault/incident/job_rules.hpp"

namespace banyan::fault {
namespace {

constexpr std::array<std::string_view, 17> keys{"swept", "busy",    "name",     "reason", "kind", "xid",
                                                "sxid",  "symptom", "severity", "class",  "part", "object",
                                                "count", "jobs",    "within",   "action", "why"};
constexpr std::size_t most_name = 40, most_why = 200, most_listed = 1000;
constexpr std::int64_t most_count = incident::max_seen, most_number = 99'999;
constexpr std::int64_t least_within_ms = 60'000, most_within_ms = 30ll * 24 * 3'600'000;

std::vector<std::string> texts(std::span<const std::string_view> words) {
    return {words.begin(), words.end()};
}

std::string possible(std::string_view word, std::span<const std::string_view> known) {
    const auto close = nearest(word, texts(known));
    return fmt::format("possible are {}{}", fmt::join(known, ", "),
                       close.empty() ? "" : fmt::format("; did you mean \"{}\"?", close));
}

/// As it stands in the file, to be shown.
std::string given(const toml::node& node) {
    if (const auto* text = node.as_string())
        return fmt::format("\"{}\"", printable(text->get().substr(0, 80)));
    if (const auto* number = node.as_integer()) return std::to_string(number->get());
    if (node.is_boolean()) return node.as_boolean()->get() ? "true" : "false";
    return node.is_array() ? "a list" : node.is_table() ? "a table" : "no whole number and no text";
}

bool is_name(std::string_view text) {
    constexpr std::string_view most = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    return !text.empty() && text.size() <= most_name && most.contains(text.front()) &&
           std::ranges::all_of(text,
                               [&](char c) { return most.contains(c) || c == '-' || c == '_' || c == '.'; });
}

template <class Enum>
std::vector<Enum> enumerators(const std::vector<std::size_t>& places) {
    std::vector<Enum> out;
    for (const auto place : places) out.push_back(static_cast<Enum>(place));
    return out;
}

std::vector<std::string> chosen(const std::vector<std::size_t>& places,
                                std::span<const std::string_view> known) {
    std::vector<std::string> out;
    for (const auto place : places) out.emplace_back(known[place]);
    return out;
}

}  // namespace

void rule_reader::wrong(const toml::node& at, std::string what, std::string hint) {
    const auto& begin = at.source().begin;
    // A file of nothing has no place.
    problems_.push_back({false, std::max<std::uint32_t>(begin.line, 1),
                         std::max<std::uint32_t>(begin.column, 1), std::move(what), std::move(hint)});
}

void rule_reader::complain(const toml::node& at, std::string_view what, std::string hint) {
    wrong(at, fmt::format("{}: {}", called_, what), std::move(hint));
}

rule rule_reader::read(const toml::table& from) {
    rule out;
    out.line = from.source().begin.line;
    out.column = from.source().begin.column;
    called_ = fmt::format("rule {}", ++count_);
    name(from, out);
    for (const auto& [key, node] : from)
        if (std::ranges::find(keys, key.str()) == keys.end())
            complain(node, fmt::format("there is no key \"{}\"", printable(key.str())),
                     possible(key.str(), keys));
    conditions(from, out.when);
    window(from, out);
    action(from, out);
    refuse_to_accuse(from, out);
    return out;
}

void rule_reader::name(const toml::table& from, rule& into) {
    const auto* node = from.get("name");
    if (!node)
        return complain(from, "it has no name", "name = \"...\", by which incidents tell what decided");
    const auto text = node->value_exact<std::string>();
    if (!text || !is_name(*text))
        return complain(
            *node, fmt::format("name = {}", given(*node)),
            fmt::format("expected at most {} letters, digits, \"-\", \"_\" and \".\"", most_name));
    into.name = *text;
    called_ = fmt::format("rule \"{}\"", *text);
    const auto [first, fresh] = names_.try_emplace(*text, node->source().begin.line);
    if (!fresh)
        complain(*node, fmt::format("the rule of line {} has this name", first->second), "give it another");
}

void rule_reader::action(const toml::table& from, rule& into) {
    const auto* node = from.get("action");
    if (!node)
        return complain(from, "it has no action",
                        fmt::format("possible are {}", fmt::join(action_words(), ", ")));
    const auto found = words(from, "action", action_words());
    if (found.size() > 1) complain(*node, "it has several actions", "one includes all that are less");
    if (found.size() != 1) return;
    into.step = static_cast<step_kind>(found.front());
    into.why = words_for(into.step);
    if (const auto* busy = from.get("busy")) {
        const auto is = busy->value_exact<bool>();
        if (!is || into.step != step_kind::sweep)
            complain(*busy, fmt::format("busy = {}", given(*busy)),
                     "expected true or false, with action = \"sweep\" alone");
        else
            into.busy = *is;
    }
    const auto* why = from.get("why");
    if (!why) return;
    const auto text = why->value_exact<std::string>();
    if (!text || text->empty() || text->size() > most_why || !is_printable(*text))
        return complain(*why, fmt::format("why = {}", given(*why)),
                        fmt::format("expected one line of text, at most {} bytes", most_why));
    into.why = *text;
}

// A user could take out any node that he gets.
void rule_reader::refuse_to_accuse(const toml::table& from, const rule& read) {
    if (read.step < step_kind::drain || needs_unfit(read)) return;
    const auto refuse = [&](const char* key, const std::string& word) {
        complain(
            *from.get(key),
            fmt::format("{} = \"{}\" with action = \"{}\" is not possible: no node is taken out for what "
                        "a job's programs tell of it",
                        key, word, name_of(read.step)),
            "action = \"alert\", or \"sweep\" and a rule with swept = \"unfit\"");
    };
    for (const auto& reason : read.when.reasons)
        if (reason == job_end_reason || reason == job_damage_reason) return refuse("reason", reason);
    const auto rows = catalog::symptoms();
    for (const auto& symptom : read.when.symptoms) {
        const auto row = std::ranges::find(rows, symptom, &catalog::symptom_row::name);
        if (row != rows.end() && catalog::is_told_of_a_job(static_cast<std::uint32_t>(row->code)))
            return refuse("symptom", symptom);
    }
}

void rule_reader::window(const toml::table& from, rule& into) {
    const auto *count = from.get("count"), *jobs = from.get("jobs"), *within = from.get("within");
    const auto* counted = count ? count : jobs;
    if (!counted && !within) return;
    if (!counted || !within)
        return complain(counted ? *counted : *within,
                        fmt::format("it has {} alone", count  ? "count"
                                                       : jobs ? "jobs"
                                                              : "within"),
                        fmt::format("{} = 3 and within = \"24h\" belong together", jobs ? "jobs" : "count"));
    const auto read = [&](const char* key, const toml::node* node, std::uint32_t& number) {
        if (!node) return;
        const auto given_number = node->value_exact<std::int64_t>();
        if (!given_number || *given_number < 2 || *given_number > most_count)
            complain(*node, fmt::format("{} = {}", key, given(*node)),
                     fmt::format("expected a number from 2 to {}", most_count));
        else
            number = static_cast<std::uint32_t>(*given_number);
    };
    read("count", count, into.count);
    read("jobs", jobs, into.jobs);
    const auto text = within->value_exact<std::string>();
    const auto time = text ? parse_duration(*text) : fail(errc::invalid_input, "");
    if (!time || time->count() < least_within_ms || time->count() > most_within_ms)
        complain(*within, fmt::format("within = {}", given(*within)),
                 "expected a duration from \"1m\" to \"720h\"");
    else
        into.within_ms = time->count();
}

void rule_reader::conditions(const toml::table& from, criteria& into) {
    into.reasons = chosen(words(from, "reason", reason_words()), reason_words());
    const auto symptoms = symptom_words();
    into.symptoms = chosen(words(from, "symptom", symptoms), symptoms);
    into.swept = chosen(words(from, "swept", swept_words()), swept_words());
    into.kinds = enumerators<line_kind>(words(from, "kind", kind_words()));
    into.severities = enumerators<severity>(words(from, "severity", severity_words()));
    into.classes = enumerators<precedence>(words(from, "class", class_words()));
    into.parts = enumerators<catalog::part>(words(from, "part", part_words()));
    into.objects = enumerators<object_kind>(words(from, "object", object_words()));
    into.xids = numbers(from, "xid");
    into.sxids = numbers(from, "sxid");
}

std::vector<const toml::node*> rule_reader::entries(const toml::table& from, const char* key) {
    const auto* node = from.get(key);
    if (!node) return {};
    const auto* list = node->as_array();
    if (!list) return {node};
    if (list->empty())
        complain(*node, fmt::format("{} is empty", key), "leave the key out where it does not matter");
    if (list->size() > most_listed) {
        complain(*node, fmt::format("{} has {} entries", key, list->size()),
                 fmt::format("at most {} are possible", most_listed));
        return {};
    }
    std::vector<const toml::node*> out;
    for (const auto& item : *list) out.push_back(&item);
    return out;
}

std::vector<std::size_t> rule_reader::words(const toml::table& from, const char* key,
                                            std::span<const std::string_view> known) {
    std::vector<std::size_t> out;
    for (const auto* item : entries(from, key)) {
        const auto text = item->value_exact<std::string>();
        const auto at = text ? std::ranges::find(known, *text) : known.end();
        if (at == known.end())
            complain(*item, fmt::format("{} = {} is not possible", key, given(*item)),
                     possible(text.value_or(""), known));
        else
            out.push_back(static_cast<std::size_t>(at - known.begin()));
    }
    return out;
}

std::optional<number_range> rule_reader::range(const toml::node& item) {
    std::int64_t first = 0, last = 0;
    if (const auto one = item.value_exact<std::int64_t>()) {
        first = last = *one;
    } else if (const auto text = item.value_exact<std::string>()) {
        const auto ends = split(*text, '-');
        const auto low = parse_number(ends.front(), most_number),
                   high = parse_number(ends.back(), most_number);
        if (ends.size() != 2 || !low || !high) return {};
        first = static_cast<std::int64_t>(*low), last = static_cast<std::int64_t>(*high);
    }
    if (first < 1 || last > most_number || first > last) return {};
    return number_range{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last)};
}

std::vector<number_range> rule_reader::numbers(const toml::table& from, const char* key) {
    std::vector<number_range> out;
    for (const auto* item : entries(from, key))
        if (const auto found = range(*item))
            out.push_back(*found);
        else
            complain(
                *item, fmt::format("{} = {} is not possible", key, given(*item)),
                fmt::format("expected a number from 1 to {}, or a range such as \"144-150\"", most_number));
    return out;
}

}  // namespace banyan::fault
