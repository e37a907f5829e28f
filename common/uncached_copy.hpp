// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

namespace banyan {

/// Copies `from`, which is in the cache, to `to`, which is as long and is not read soon: past the cache,
/// where the processor can. Else each line of `to` would be fetched from memory first, only to be
/// overwritten.
void uncached_copy(std::span<std::byte> to, std::span<const std::byte> from);

}  // namespace banyan
