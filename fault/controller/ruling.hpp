// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace banyan::fault {

/// What an administrator says about an action that was held back.
enum class ruling : std::uint8_t {
    approve,  ///< do it now, past the limits
    retry,    ///< ask the limits again now
    cancel,   ///< never do it by yourself for this incident
};

}  // namespace banyan::fault
