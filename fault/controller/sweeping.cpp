// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/sweeping.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "fault/policy/rule.hpp"
#include "fault/sources/log_line.hpp"

namespace banyan::fault {
namespace {

constexpr const char* sweep_verb = "sweep";

auto culprit_of(const incident& i) {
    return std::tuple(i.line_ms, i.root_precedence, i.xid, i.sxid, i.symptom, i.object.bdf, i.lost.size());
}

void say(records& known, std::uint64_t number, const std::string& node, std::string text) {
    const auto* i = known.incidents().find(number);
    const bool said = i && std::ranges::any_of(i->actions, [&](const auto& a) {
                          return a.what == sweep_verb && a.result == text;
                      });
    if (!said) known.record(number, sweep_verb, node, std::move(text), false);
}

}  // namespace

task<bool> sweep_node(records& known, hub& agents, std::uint64_t number, sweep_wish wish) {
    auto* i = known.incidents().find(number);
    if (!i || !i->swept.empty()) co_return false;
    const auto node = i->object.node;
    if (wish.jobs > 0 && !wish.busy) {
        say(known, number, node, "left alone: jobs have the node, and the rule has no busy = true");
        co_return false;
    }
    if (wish.dry_run) {
        say(known, number, node, "dry run: its agent would be asked for a sweep");
        co_return false;
    }
    const auto of = culprit_of(*i);
    const auto found = co_await agents.sweep(node, number);
    if (!(i = known.incidents().find(number)) || !i->swept.empty()) co_return false;
    // Of what was there before: it tells nothing of what came since.
    if (!found || culprit_of(*i) != of) co_return true;
    const auto words = swept_words();
    i->swept = std::ranges::find(words, found->verdict) == words.end() ? "unknown" : found->verdict;
    const auto text = fmt::format("{}: {}",
                                  i->swept == "fit"     ? "the node is fit"
                                  : i->swept == "unfit" ? "the node is unfit"
                                                        : "whether the node is fit is not known",
                                  found->text);
    i->add_evidence({clock::wall_ms(), node, "banyan-sweep: " + text, 0, i->swept == "unfit"});
    known.record(number, sweep_verb, node, text, i->swept != "unknown");
    co_return true;
}

}  // namespace banyan::fault
