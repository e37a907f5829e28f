// SPDX-License-Identifier: BSD-3-Clause
//
// The strange fabrics: each of one of the kinds that real ones are of (generate/oddities.hpp), and how right
// the model is on them. Every answer is right, wrong, or "unknown": the model says that it does not know.
#pragma once

#include <map>

#include "test/bench/topo_bench.hpp"

namespace banyan::topo::bench {

/// Number `seed`: the kinds in turn, and of each the sizes, 16 to 200 hosts.
struct strange_fabric {
    std::string kind;
    generate::options o;
};
result<strange_fabric> strange_of(std::uint64_t seed);

struct answers {
    std::uint64_t asked = 0, right = 0, unknown = 0;
    std::uint64_t wrong() const { return asked - right - unknown; }
    void add(bool is_right, bool is_unknown) {
        ++asked;
        right += is_right;
        unknown += !is_right && is_unknown;
    }
    void add(const answers& other) {
        asked += other.asked;
        right += other.right;
        unknown += other.unknown;
    }
};

struct defect_score {
    kind_score of;
    std::uint64_t perhaps = 0;  ///< false reports of which the model itself is not sure
};

/// What the model says of fabrics of one kind, or of all.
struct strange_scores {
    std::uint64_t fabrics = 0, sound = 0, refused = 0, false_on_sound = 0;
    std::map<std::string, defect_score> defects;  ///< by the defect's kind
    answers groups, rails, roles, levels;         ///< of hosts, compute HCAs, all HCAs, switches
    void add(const strange_scores& other);
};

/// `refused`: the reader or the model would not take it, so it knows nothing of it.
void score_strange(strange_scores& s, const fabric& f, bool refused, const generate::truth& facts,
                   const std::string& label, bool verbose);
void print_strange(const std::map<std::string, strange_scores>& by_kind);
void add_strange(banyan::bench::figures& figures, const strange_scores& all);

/// All of that for `count` seeds from `first` on; false where one cannot be made.
bool measure_strange(banyan::bench::figures& figures, std::uint64_t first, std::uint64_t count, bool verbose,
                     bool table);

}  // namespace banyan::topo::bench
