// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/run.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>

#include "common/json_fields.hpp"
#include "sweep/apart.hpp"

namespace banyan::sweep {
namespace {

using steady = banyan::clock;

look as_look(const judged_look& one) {
    return [&one] { return as_json(one()); };
}

/// One finding out of a check's answers.
finding joined(std::span<const result<nlohmann::json>> answers) {
    std::vector<finding> all;
    for (const auto& answer : answers) {
        const auto found = answer ? finding_from(*answer) : std::unexpected(answer.error());
        all.push_back(found ? *found : unknown(found.error()));
    }
    std::ranges::stable_sort(all, std::greater{}, &finding::is);
    finding out;
    for (auto& one : all) add(out, std::move(one));
    return out;
}

std::vector<finding> look_all(const std::vector<check>& checks, const place& where, const look* question,
                              result<nlohmann::json>& answer, deadline until) {
    std::vector<std::vector<judged_look>> of_each;
    for (const auto& c : checks) of_each.push_back(c.looks(where));
    std::vector<look> all;
    for (const auto& some : of_each)
        for (const auto& one : some) all.push_back(as_look(one));
    if (question) all.push_back(*question);
    const auto answers = look_apart(all, until);
    if (question) answer = answers.back();
    std::vector<finding> out;
    std::size_t at = 0;
    for (const auto& some : of_each) {
        out.push_back(joined(std::span(answers).subspan(at, some.size())));
        at += some.size();
    }
    return out;
}

result<bool> busy_from(const result<nlohmann::json>& answer) {
    if (!answer) return std::unexpected(answer.error());
    const json_fields fields(*answer);
    if (fields.has("busy")) return fields.flag("busy");
    BANYAN_TRY(auto why, fields.text("error"));
    return fail(errc::unavailable, std::move(why));
}

/// What stands in the place of a finding that means nothing while a job runs; nothing where none does.
std::optional<finding> instead(const result<bool>& busy) {
    if (busy && !*busy) return {};
    if (busy) return finding{verdict::skipped, {"a job has the node; --even-if-busy looks all the same"}};
    return unknown({errc::unavailable, "whether a job has the node is not known: " + busy.error().text(),
                    "--even-if-busy looks all the same"});
}

}  // namespace

report sweep_node(const sweep_options& o, const ask_busy& ask) {
    std::vector<check> together, alone;
    for (const auto& c : o.checks) (c.alone ? alone : together).push_back(c);
    const auto begin = steady::now();
    const bool matters = !o.even_if_busy && std::ranges::any_of(o.checks, &check::idle_only);
    const look question = [&ask] {
        const auto busy = ask();
        return busy ? nlohmann::json{{"busy", *busy}} : nlohmann::json{{"error", busy.error().text()}};
    };
    result<nlohmann::json> answer = nlohmann::json{{"busy", false}};
    auto found = look_all(together, o.where, matters ? &question : nullptr, answer, begin + o.looking);
    const auto put_off = instead(busy_from(answer));
    report out;
    for (std::size_t i = 0; i < together.size(); ++i) {
        const bool moot = together[i].idle_only && put_off;
        if (moot) found[i] = *put_off;
        out.push_back({std::string(together[i].name), std::move(found[i])});
    }
    const auto until = begin + o.looking + o.measuring;
    for (const auto& c : alone)
        out.push_back({std::string(c.name), c.idle_only && put_off
                                                ? *put_off
                                                : look_all({c}, o.where, nullptr, answer, until).front()});
    return out;
}

}  // namespace banyan::sweep
