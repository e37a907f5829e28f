// SPDX-License-Identifier: BSD-3-Clause
//
// Whether what the rules ask for may be done now: age, boot, rate and breaker. Pure: no clock, no Slurm.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fault/incident/incident.hpp"
#include "fault/policy/policy.hpp"

namespace banyan::fault {

/// What could not be done for so long is a person's business: the fault may have been mended meanwhile.
inline constexpr std::int64_t most_held_ms = 24 * 3'600'000;

/// What was decided leaves the node in service.
inline bool node_stays(const incident& i) {
    return i.decided < action_words().size() && keeps_the_node(static_cast<step_kind>(i.decided));
}

struct policy_limits {
    std::uint32_t drains_per_hour = 8, drains_percent = 2;  ///< the larger of the two counts
    std::uint32_t breaker_percent = 50;
    std::int64_t breaker_window_ms = 5 * 60'000;
    std::int64_t max_event_age_ms = 10 * 60'000;
};

/// Counts the nodes that are taken out, each once, and stops when it becomes too much: for the rest of the
/// hour, or until a person has looked (the breaker). Incidents whose jobs are interrupted while the node
/// stays count apart, with the same number an hour, and open no breaker: users can bring them about. Survives
/// a restart through its owner.
class limiter {
  public:
    explicit limiter(policy_limits limits) : limits_(limits) {}

    /// What the rules ask for, narrowed by age, boot, rate and breaker. `nodes` = nodes of the cluster, 0
    /// when not known. May trip the breaker. A node that is allowed to go counts as taken out from now on.
    decision narrow(decision asked, const incident& i, bool current_boot, std::uint32_t nodes,
                    std::int64_t now_ms);
    /// A node was taken out, by an earlier controller.
    void count(const std::string& node, std::int64_t at_ms) { taken_[node] = wanted_[node] = at_ms; }
    /// For incident `number` jobs were interrupted or its node swept, by an earlier controller, or past the
    /// limits.
    void count_where_node_stays(std::uint64_t number, std::int64_t at_ms) { spent_[number] = at_ms; }
    /// Its node was taken out for `i`.
    void took(const incident& i, std::int64_t at_ms) { taken_.try_emplace(i.object.node, at_ms); }
    /// Its node was not taken out for `i` after all; that it should go out counts still. Nothing changes
    /// where another of `all` has it out.
    void not_taken(const incident& i, const std::map<std::uint64_t, incident>& all);
    /// Nor was it to go out: it is out already, or the fault is over. It counts for nothing, unless another
    /// of `all` has it out or wants that.
    void not_wanted(const incident& i, const std::map<std::uint64_t, incident>& all);
    /// It is in service again.
    void returned(const std::string& node);
    /// It counts as taken out: what is left to do there has room.
    bool counts(const std::string& node) const { return taken_.contains(node); }
    /// Whether a further node may go out now.
    bool has_room(std::int64_t now_ms) const;
    /// Whether that may be done for incident `number` now: for one that counts already, the rest of it.
    bool has_room_where_nodes_stay(std::int64_t now_ms, std::uint64_t number) const;
    /// Nothing was done for incident `number` after all.
    void unspent(std::uint64_t number) { spent_.erase(number); }
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
    decision narrow_what_stays(decision asked, const incident& i, std::int64_t now_ms);
    std::size_t spent_since(std::int64_t since_ms) const;

    policy_limits limits_;
    std::map<std::string, std::int64_t> taken_;    // by node: when
    std::map<std::string, std::int64_t> wanted_;   // those that should go out, held back or not
    std::map<std::uint64_t, std::int64_t> spent_;  // by incident: when
    std::uint32_t nodes_ = 0;
    bool tripped_ = false;
};

}  // namespace banyan::fault
