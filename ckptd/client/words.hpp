// SPDX-License-Identifier: BSD-3-Clause
//
// What the library hears from the environment, and says on standard error.
#pragma once

#include <string>
#include <string_view>

#include "ckptd/client/connection.hpp"

namespace banyan::ckpt {

/// "" where it is not set.
std::string environment(const char* name);
void say(const rank_name& who, std::string_view text);

}  // namespace banyan::ckpt
