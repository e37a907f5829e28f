// SPDX-License-Identifier: BSD-3-Clause
//
// What the system lets this process have.
#pragma once

#include <cstddef>

#include "common/result.hpp"

namespace banyan {

/// Raises this process's soft limit of open descriptors to the hard one. The limit in force afterwards; an
/// error when that is below `needed`, for the daemon to say once: it works on with what there is.
result<std::size_t> raise_descriptor_limit(std::size_t needed);

}  // namespace banyan
