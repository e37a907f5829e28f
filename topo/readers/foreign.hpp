// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include "common/result.hpp"

namespace banyan::topo {

/// The error for a text without a single record: names the tool whose output it is, where that can be told.
/// `binary`: it had bytes of value zero.
std::unexpected<error> not_a_dump(std::string_view text, bool binary);

}  // namespace banyan::topo
