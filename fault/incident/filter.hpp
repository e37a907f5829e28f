// SPDX-License-Identifier: BSD-3-Clause
//
// Which incidents somebody wants to see: what banyan-fault asks the controller for.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "common/json_fields.hpp"
#include "common/result.hpp"
#include "fault/incident/incident.hpp"

namespace banyan::fault {

struct incident_filter {
    std::string nodes;   ///< a host list; empty = all
    std::string reason;  ///< empty = all
    std::string state;   ///< open (all that are not closed), acting, done, held, closed; empty = all
    std::optional<std::uint64_t> job;
    std::int64_t since_ms = 0, until_ms = INT64_MAX;  ///< when it was opened

    /// Into the request `to`.
    void write(nlohmann::json& to) const;
};

/// A filter that was checked, to be asked about many.
class incident_sieve {
  public:
    static result<incident_sieve> from(const incident_filter& filter);
    /// From a request, which may lack all of it.
    static result<incident_sieve> from(const json_fields& request);
    bool passes(const incident& i) const;

  private:
    incident_filter filter_;
    std::set<std::string, std::less<>> nodes_;
};

}  // namespace banyan::fault
