// SPDX-License-Identifier: BSD-3-Clause
//
// A report for people, for programs and for node_exporter.
#pragma once

#include <cstdint>
#include <string>

#include "sweep/finding.hpp"

namespace banyan::sweep {

/// What else is told beside the findings.
struct told {
    std::string node{};
    std::string slurm{};  ///< what was done in Slurm, or why not; empty: nothing was asked
    bool slurm_failed = false;
    double seconds = 0;  ///< that the sweep took
};

/// At most 100 columns; foreign text is printable.
std::string as_table(const report& r, const told& t);
std::string as_json_text(const report& r, const told& t);
/// The text format of Prometheus. `now` in seconds since the epoch.
std::string as_metrics(const report& r, std::int64_t now);

}  // namespace banyan::sweep
