// SPDX-License-Identifier: BSD-3-Clause
//
// How sure it is that an incident's culprit is what broke. It follows from the kind of evidence alone, so an
// incident that is read from the history is judged by the same words. Pure; nothing is done because of it.
#pragma once

#include <cstdint>
#include <string_view>

#include "fault/incident/incident.hpp"

namespace banyan::fault {

enum class confidence : std::uint8_t {
    suspected,  ///< the evidence names one of several that may be at fault, or infers it from silence
    likely,     ///< one source names this part, of which the fault is
    certain,    ///< a second source says the same, or the part was looked at after it was told of
};

struct sureness {
    confidence how = confidence::suspected;
    std::string_view why;  ///< in words, for people; lives for ever
};

sureness sureness_of(const incident& i);
std::string_view name_of(confidence c);

}  // namespace banyan::fault
