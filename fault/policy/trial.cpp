// SPDX-License-Identifier: BSD-3-Clause
#include "fault/policy/trial.hpp"

namespace banyan::fault {

void policy_trial::take(const event& e) {
    const auto out = engine_.absorb(e, e.line_ms);
    auto* i = engine_.find(out.number);
    if (out.created || out.escalated || rules_.asks_for_more(*i, engine_.all())) judge(out.number);
}

void policy_trial::take(incident i) {
    const auto number = i.number;
    engine_.restore(std::move(i));
    judge(number);
}

void policy_trial::judge(std::uint64_t number) {
    auto* i = engine_.find(number);
    auto what = rules_.decide(*i, engine_.all());
    i->rule = what.rule;
    i->decided = static_cast<std::uint8_t>(what.step);
    i->advice = what.why;
    auto& all = judged_[number];
    if (!all.empty() && all.back().what.rule == what.rule && all.back().what.step == what.step) return;
    all.push_back({i->last_ms, std::move(what)});
}

}  // namespace banyan::fault
