// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace banyan::topo::cli {

/// The nodes that Slurm has switched off, or is switching, to save power (sinfo's states with ~, # and %):
/// asked of sinfo.
result<std::vector<std::string>> switched_off();

/// The same of what `sinfo -h -N -o "%N %t"` prints.
std::vector<std::string> read_switched_off(std::string_view text);

}  // namespace banyan::topo::cli
