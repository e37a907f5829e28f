// SPDX-License-Identifier: BSD-3-Clause
//
// What a look at the fabric means for the incidents that are known: one physical fault is one incident,
// whether it comes in parts, goes in parts, or comes again. Pure: no clock, no fabric.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fault/fabric/fabric_fault.hpp"
#include "fault/incident/incident.hpp"

namespace banyan::fault {

/// HCAs that go, one after the other, within this time may turn out to be one host that goes.
inline constexpr std::int64_t grows_within_ms = 60'000;

struct fabric_step {
    enum class kind : std::uint8_t {
        open,   ///< a new incident for `fault`
        again,  ///< incident `number` is open, or opened again, and counts once more
        grow,   ///< incident `number` was the first sign of `fault`, which becomes its culprit, or was
                ///< planned, and is not any more
        part,   ///< incident `number` is partly mended: `words` is its new cause
        close,  ///< incident `number` is closed; `words` says by what, and the fault's cause, if any, is its
                ///< own
    } what = kind::open;
    std::uint64_t number = 0;
    fabric_fault fault;
    std::string words;
    bool back = false;  ///< open, again: it was down only for a moment, and is closed at once
};

/// How the cause of an incident ends that is open, and of whose object nothing is missed: it is not there,
/// but the accepted fabric has forgotten it.
inline constexpr std::string_view not_accepted =
    " (the accepted fabric does not have it as it was: whether it is to come back is not known)";

/// Whether the last look saw all of an object, and as fast as it was. None: its rate was not to be seen.
using look_for = std::function<std::optional<bool>(const object&)>;

/// `missing`: all that is missing now; `passing`: what was told to have gone and is there; `seen`: what is
/// not missing is back only where it was seen. The steps in the order in which they are to be done.
std::vector<fabric_step> plan_for(const std::map<std::uint64_t, incident>& known,
                                  const std::vector<fabric_fault>& missing,
                                  const std::vector<fabric_fault>& passing, const look_for& seen,
                                  std::int64_t now_ms);

}  // namespace banyan::fault
