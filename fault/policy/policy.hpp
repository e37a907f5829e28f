// SPDX-License-Identifier: BSD-3-Clause
//
// What an incident asks for, and whether it may be done now. Rules and limits only: pure, no clock, no Slurm.
// What cannot be decided is an alert: a person decides.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "fault/incident/incident.hpp"

namespace banyan::fault {

enum class step_kind : std::uint8_t { none, alert, seal, drain, node_out };

struct decision {
    step_kind step = step_kind::none;
    bool allowed = true;  ///< false: this is what would be done, `why` says what held it back
    std::string why;
};

struct policy_limits {
    std::uint32_t drains_per_hour = 8;
    std::uint32_t breaker_percent = 50;
    std::int64_t breaker_window_ms = 5 * 60'000;
    std::int64_t max_event_age_ms = 10 * 60'000;
};

/// What the rules say of an incident, without limits.
decision rule_for(const incident& i);

/// `d` in words, for the incident about `node`: in dry run, what a person would have to do.
std::string advice_of(const decision& d, const std::string& node, bool dry_run);

/// Counts what was taken out, and stops when it becomes too much. Survives a restart through its owner.
class limiter {
  public:
    explicit limiter(policy_limits limits) : limits_(limits) {}

    /// rule_for, narrowed by age, boot, rate and breaker. `nodes` = nodes of the cluster, 0 when not known.
    /// May trip the breaker.
    decision decide(const incident& i, bool current_boot, std::uint32_t nodes, std::int64_t now_ms);
    /// A node was taken out (or would have been, in dry run).
    void count(std::int64_t at_ms) { taken_.push_back(at_ms); }
    bool tripped() const { return tripped_; }
    void trip(bool on) { tripped_ = on; }
    std::uint32_t taken_since(std::int64_t since_ms) const;

  private:
    policy_limits limits_;
    std::deque<std::int64_t> taken_;
    bool tripped_ = false;
};

}  // namespace banyan::fault
