// SPDX-License-Identifier: BSD-3-Clause
//
// Bandwidths against those of a node that is well: what its sweep printed with --json.
#pragma once

#include <map>
#include <string>

#include "sweep/finding.hpp"

namespace banyan::sweep {

using baseline_figures = std::map<std::string, double>;

constexpr std::size_t max_figures_bytes = std::size_t{1} << 20;

/// Of a report of banyan-sweep. Fails where it is none.
result<baseline_figures> read_figures(const std::string& json, const std::string& name);

/// Each bandwidth of `f` has to reach `percent` of the baseline one. One that the baseline node did not
/// measure could not be looked at.
void hold_to(finding& f, const baseline_figures& baseline, std::uint32_t percent);

/// The same, from the file; nothing where it has no name.
void hold_to(finding& f, const std::string& path, std::uint32_t percent);

}  // namespace banyan::sweep
