// SPDX-License-Identifier: BSD-3-Clause
//
// Events through incidents and a policy, as the controller takes them, with nobody to act: what a policy
// would have led to. Pure; limits are not applied.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "fault/incident/engine.hpp"
#include "fault/policy/policy.hpp"

namespace banyan::fault {

class policy_trial {
  public:
    struct judgement {
        std::int64_t at_ms = 0;
        decision what;
    };

    policy_trial(const policy& rules, std::int64_t window_ms) : rules_(rules), engine_(window_ms) {}

    void take(const event& e);
    /// Of an incident that is there already; it keeps its number.
    void take(incident i);
    const engine& incidents() const { return engine_; }
    /// The engine keeps the newest; so many more there were.
    std::size_t forgotten() const { return judged_.size() - engine_.all().size(); }
    /// Those that said something else than the one before.
    const std::vector<judgement>& judgements(std::uint64_t number) const { return judged_.at(number); }

  private:
    void judge(std::uint64_t number);

    const policy& rules_;
    engine engine_;
    std::map<std::uint64_t, std::vector<judgement>> judged_;
};

}  // namespace banyan::fault
