// SPDX-License-Identifier: BSD-3-Clause
//
// Lines in, incidents out: a storm of hundreds of lines on eight GPUs is one incident with one culprit. Keeps
// what is open and the recent past; pure (no clock, no files): time comes in with each call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "fault/event.hpp"
#include "fault/incident/incident.hpp"

namespace banyan::fault {

class engine {
  public:
    struct outcome {
        std::uint64_t number = 0;
        bool created = false;
        bool escalated = false;  ///< weighs more than before: the policy must look again
        bool past = false;       ///< of an incident that somebody closed since it was written: history
        std::vector<std::uint64_t> folded{};  ///< see fold_links
    };

    /// Of what is told of jobs, of what accuses applications, and of all else.
    static constexpr std::size_t max_told = 500, max_of_applications = 2000, max_kept = 2000;

    explicit engine(std::int64_t window_ms = 30'000) : window_ms_(window_ms) {}

    outcome absorb(const event& e, std::int64_t now_ms);
    /// A new incident that did not come from the kernel log (the fabric's).
    incident& open(incident made, std::int64_t now_ms);
    /// From the history, at start.
    void restore(incident kept);
    /// No smaller number is given to a new incident.
    void begin_at(std::uint64_t number) { next_ = std::max(next_, number); }

    /// Of jobs and applications of which nothing was heard for a day: gives their numbers.
    std::vector<std::uint64_t> close_quiet(std::int64_t now_ms);

    /// It is known now whose jobs the fault of `number` hit: what was told of how their tasks ended, a moment
    /// before or after, becomes evidence of it. Gives the incidents that are closed for that.
    std::vector<std::uint64_t> fold_ends(std::uint64_t number);

    /// The culprit of what an NVLink domain tells is known now: what GPUs of it told of their links a moment
    /// before becomes evidence of `number`. Gives the incidents that are closed for that: nothing was begun
    /// for them, nor may be any more. One for which something was stays, and is named.
    std::vector<std::uint64_t> fold_links(std::uint64_t number);

    incident* find(std::uint64_t number);
    const std::map<std::uint64_t, incident>& all() const { return incidents_; }
    /// Changes whenever something that a watcher could see may have changed.
    std::uint64_t revision() const { return revision_; }
    void touch() { ++revision_; }

  private:
    // engine_homes.cpp
    static bool repeats(const incident& i, const event& e);
    bool belongs(const incident& i, const event& e, precedence w) const;
    incident* home_of(const event& e, precedence w);
    incident* end_explained_by(const event& e, precedence w);
    incident* past_home_of(const event& e, precedence w);
    incident* broken_again(const event& e, std::int64_t now_ms);

    // engine_culprits.cpp
    static void accuse_switch(incident& i, const event& e, precedence w);
    void become_root(incident& i, const event& e, precedence w);
    bool hear_of_job(incident& i, const event& e, precedence w);

    // engine_nvlink.cpp
    bool has_its_own(const event& e, precedence w) const;
    bool is_outweighed(const incident& i, const event& e, precedence w) const;

    void add(incident& home, const event& e, bool decides);
    void make_room_for(const incident& fresh);  // engine_closing.cpp

    std::int64_t window_ms_;
    std::uint64_t next_ = 1, revision_ = 1;
    std::map<std::uint64_t, incident> incidents_;
};

}  // namespace banyan::fault
