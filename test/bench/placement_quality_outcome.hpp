// SPDX-License-Identifier: BSD-3-Clause
//
// One case: what banyan and its peers send, and what is proven of it.
#pragma once

#include <string>
#include <vector>

#include "test/bench/placement_quality.hpp"

namespace banyan::topo::quality {

/// What one way to place a job sends, by each model: by the variant that sends least of it; and by the one
/// with the least sum.
struct peer {
    std::string name;
    by_model sent{};
    double total = 0;
    bool there = false;

    void add(const by_model& s);
};

struct outcome {
    const test_case* c = nullptr;
    std::vector<peer> peers;
    by_model given{};                                          ///< banyan's, with the model given
    by_model without{};                                        ///< and without one
    std::array<std::optional<double>, models.size()> bound;    ///< from a program
    std::array<std::optional<double>, models.size()> counted;  ///< counted_bound

    /// Of the best peer.
    double best(std::size_t model) const;
    double best_sum() const;
};

class evaluation {
  public:
    /// Keeps references.
    evaluation(const site& s, const test_case& c);

    /// The nodes that slurmctlds chose, where they did; else those of the emulations.
    outcome outcome_beside(const std::optional<hosts>& from_tree,
                           const std::optional<hosts>& from_block) const;
    /// Fills in what is proven; `solve`: also by a program.
    void prove(const oracle_limits& limits, bool solve, outcome& out) const;

  private:
    peer peer_on(const char* name, const std::vector<hosts>& variants) const;
    by_model placed(const known_model* m) const;

    const site& s_;
    const test_case& c_;
    counted_job by_slot_, by_node_;
};

}  // namespace banyan::topo::quality
