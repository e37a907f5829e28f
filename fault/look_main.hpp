// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace banyan::fault {

/// `banyan-faultd look WHAT`: looks once, and prints what it saw as one JSON object; "error" where it could
/// not look. Of what tells by itself (hca-events) a line each, for ever. The exit code: 2 for a WHAT that is
/// not known. `names`: what of it.
int print_look(const std::string& what, const std::string& root, const std::vector<std::string>& names);

}  // namespace banyan::fault
