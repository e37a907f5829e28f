// SPDX-License-Identifier: BSD-3-Clause
//
// A sweep of the culprit's node, which a rule asks for: what it finds is evidence of the incident, and
// further rules may match it.
#pragma once

#include "fault/controller/hub.hpp"
#include "fault/controller/records.hpp"

namespace banyan::fault {

struct sweep_wish {
    bool busy = false;  ///< also while jobs have the node
    bool dry_run = false;
    std::size_t jobs = 0;  ///< that have it
};

/// Once for an incident. True: something is known of the node that was not known before, or of the incident,
/// which became another one meanwhile or asks for more than a sweep: it is to be judged anew.
task<bool> sweep_node(records& known, hub& agents, std::uint64_t number, sweep_wish wish);

}  // namespace banyan::fault
