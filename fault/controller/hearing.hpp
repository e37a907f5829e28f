// SPDX-License-Identifier: BSD-3-Clause
//
// Whether anybody hears of an incident. Each comes here first and with all that is new of it, whoever found
// it: the rules are asked, and only what they do not ignore is logged, counted and looked into.
#pragma once

#include <memory>

#include "fault/controller/records.hpp"
#include "fault/metrics/metrics.hpp"
#include "fault/policy/policy.hpp"

namespace banyan::fault {

/// What is new of an incident.
enum class change : std::uint8_t {
    first,  ///< all of it
    echo,   ///< all of it, and it is a consequence whose cause is not seen
    worse,  ///< it weighs more, has another culprit, or rests on a fresh fact
    again,  ///< it was seen once more
};

enum class heard : std::uint8_t {
    ignored,
    noted,
    act,  ///< what the rules ask for is to be done
};

class hearing {
  public:
    /// What is given by reference must outlive it.
    hearing(records& known, const policy& rules, std::shared_ptr<metrics> counters)
        : records_(known), rules_(rules), metrics_(std::move(counters)) {}

    /// The caller saves it, and acts.
    heard hear(incident& i, change what);

  private:
    void announce(const incident& i);

    records& records_;
    const policy& rules_;
    std::shared_ptr<metrics> metrics_;
};

}  // namespace banyan::fault
