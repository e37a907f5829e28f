// SPDX-License-Identifier: BSD-3-Clause
//
// What a look at the fabric means for the incidents that are known: one physical fault is one incident,
// whether it comes in parts, goes in parts, or comes again. Pure: no clock, no fabric.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fault/fabric/fabric_fault.hpp"
#include "fault/incident/incident.hpp"

namespace banyan::fault {

/// Whose culprit is of the fabric, as their boot_id says.
inline constexpr std::string_view fabric_boot = "fabric";

/// HCAs that go, one after the other, within this time may turn out to be one host that goes.
inline constexpr std::int64_t grows_within_ms = 60'000;

struct fabric_step {
    enum class kind : std::uint8_t {
        open,   ///< a new incident for `fault`
        again,  ///< incident `number` is open, or opened again, and counts once more
        grow,   ///< incident `number` was the first sign of `fault`, which becomes its culprit
        part,   ///< incident `number` is partly mended: `words` is its new cause
        close,  ///< incident `number` is closed; `words` says by what, and the fault's cause, if any, is its
                ///< own
    } what = kind::open;
    std::uint64_t number = 0;
    fabric_fault fault;
    std::string words;
    bool back = false;  ///< open, again: it was down only for a moment, and is closed at once
};

/// `missing`: all that is missing now; `passing`: what was told to have gone and is there. The steps in the
/// order in which they are to be done.
std::vector<fabric_step> plan_for(const std::map<std::uint64_t, incident>& known,
                                  const std::vector<fabric_fault>& missing,
                                  const std::vector<fabric_fault>& passing, std::int64_t now_ms);

}  // namespace banyan::fault
