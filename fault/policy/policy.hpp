// SPDX-License-Identifier: BSD-3-Clause
//
// What an incident asks for: an ordered list of rules, of which the first that matches decides. Pure: no
// clock, no Slurm. What no rule is for is an alert: a person decides. Whether it may be done now, limiter.hpp
// says.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fault/policy/rule.hpp"

namespace banyan::fault {

struct decision {
    step_kind step = step_kind::none;
    bool allowed = true;  ///< false: this is what would be done, `why` says what held it back
    std::string why;
    bool later = false;  ///< not allowed now; to be asked again
    std::string rule;    ///< that decided; empty: none did
    bool busy = false;   ///< of a sweep: also while jobs have the node
};

class policy {
  public:
    using incidents = std::map<std::uint64_t, incident>;

    policy(std::string source, std::string digest, std::vector<rule> rules)
        : source_(std::move(source)), digest_(std::move(digest)), rules_(std::move(rules)) {}

    /// `known`: the incidents among which a rule with `count` counts; its own counts in any case.
    decision decide(const incident& i, const incidents& known = {}) const;
    /// Another line may ask for more than what was decided, without weighing more.
    bool asks_for_more(const incident& i, const incidents& known) const;

    const std::vector<rule>& rules() const { return rules_; }
    /// The file; "the shipped rules".
    const std::string& source() const { return source_; }
    /// Of the file's text: two policies are the same when they have the same.
    const std::string& digest() const { return digest_; }

  private:
    std::string source_, digest_;
    std::vector<rule> rules_;
};

/// Whether it names a cable, by one port at least.
bool has_a_cable(const incident& i);

/// It is over because the fabric is as it was, and nobody has seen to it.
bool ended_by_itself(const incident& i);

/// False for links and switches of the fabric, which are no nodes of Slurm's.
bool has_a_node(const incident& i);

/// Of how many jobs the fault of `i` was seen on the same part within the time before its last line, as far
/// as the job of each is known.
std::size_t jobs_seen(const rule& r, const incident& i, const policy::incidents& known);

/// How often the fault of `i` was seen on the same part within the time before its last line.
std::size_t times_seen(const rule& r, const incident& i, const policy::incidents& known);

/// `d` in words, for the incident about `node`: in dry run, what a person would have to do.
std::string advice_of(const decision& d, const std::string& node, bool dry_run);

}  // namespace banyan::fault
