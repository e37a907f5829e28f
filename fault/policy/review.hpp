// SPDX-License-Identifier: BSD-3-Clause
//
// What a policy amounts to: which rule is for what, and what its writer may not have meant. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fault/policy/policy_file.hpp"

namespace banyan::fault {

/// What a rule decides when it comes alone: (group, names) as in samples.hpp.
using sample_names = std::vector<std::pair<std::string, std::vector<std::string>>>;

struct policy_review {
    std::vector<sample_names>
        decides;             ///< by rule; of one that counts, what it decides when it was often enough
    sample_names undecided;  ///< no rule is for it
    std::vector<policy_problem> warnings;
};
policy_review review(const policy& p);

/// "Xid 1-7, 9; SXid fatal"; at most `most` names of a group.
std::string text_of(const sample_names& names, std::size_t most = SIZE_MAX);
/// "kind = xid, class = reset; 3 times within 24h"
std::string conditions_of(const rule& r);

}  // namespace banyan::fault
