// SPDX-License-Identifier: BSD-3-Clause
//
// What an incident asks for, and whether it may be done now. Rules and limits only: pure, no clock, no Slurm.
// What cannot be decided is an alert: a person decides.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fault/incident/incident.hpp"

namespace banyan::fault {

enum class step_kind : std::uint8_t { none, alert, seal, drain, node_out };

struct decision {
    step_kind step = step_kind::none;
    bool allowed = true;  ///< false: this is what would be done, `why` says what held it back
    std::string why;
    bool later = false;  ///< not allowed now; to be asked again
};

struct policy_limits {
    std::uint32_t drains_per_hour = 8, drains_percent = 2;  ///< the larger of the two counts
    std::uint32_t breaker_percent = 50;
    std::int64_t breaker_window_ms = 5 * 60'000;
    std::int64_t max_event_age_ms = 10 * 60'000;
};

/// What the rules say of an incident, without limits.
decision rule_for(const incident& i);

/// `d` in words, for the incident about `node`: in dry run, what a person would have to do.
std::string advice_of(const decision& d, const std::string& node, bool dry_run);

/// Counts the nodes that are taken out, each once, and stops when it becomes too much: for the rest of the
/// hour, or until a person has looked (the breaker). Survives a restart through its owner.
class limiter {
  public:
    explicit limiter(policy_limits limits) : limits_(limits) {}

    /// rule_for, narrowed by age, boot, rate and breaker. `nodes` = nodes of the cluster, 0 when not known.
    /// May trip the breaker. A node that is allowed to go counts as taken out from now on.
    decision decide(const incident& i, bool current_boot, std::uint32_t nodes, std::int64_t now_ms);
    /// A node was taken out, by an earlier controller.
    void count(const std::string& node, std::int64_t at_ms) { taken_[node] = wanted_[node] = at_ms; }
    /// It was not taken out after all, or is in service again.
    void returned(const std::string& node);
    /// Whether a further node may go out now.
    bool has_room(std::int64_t now_ms) const;
    bool tripped() const { return tripped_; }
    /// Closed again, it counts from anew.
    void trip(bool on);
    std::uint32_t taken_since(std::int64_t since_ms) const;
    /// The most nodes within an hour.
    std::uint32_t budget() const;
    /// So many that are to go out within the window open the breaker.
    std::uint32_t breaker_at() const;

  private:
    void forget_old(std::int64_t now_ms);

    policy_limits limits_;
    std::map<std::string, std::int64_t> taken_;   // by node: when
    std::map<std::string, std::int64_t> wanted_;  // those that should go out, held back or not
    std::uint32_t nodes_ = 0;
    bool tripped_ = false;
};

}  // namespace banyan::fault
