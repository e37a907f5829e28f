// SPDX-License-Identifier: BSD-3-Clause
//
// One incident of every kind that one line, or the fabric, can make: what a policy is tried on, so that it
// can be said what each rule is for before anything breaks.
#pragma once

#include <string>
#include <vector>

#include "fault/policy/policy.hpp"

namespace banyan::fault {

struct policy_sample {
    std::string group;  ///< "Xid", "symptom", "fabric" ...
    std::string name;   ///< within it: "79", "hca-health"
    incident what;
};

/// With the numbers that `p` names and the catalogue does not have.
std::vector<policy_sample> samples_for(const policy& p);

}  // namespace banyan::fault
