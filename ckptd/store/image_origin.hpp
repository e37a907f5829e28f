// SPDX-License-Identifier: BSD-3-Clause
//
// Whose image it is. A header may be 100 MB long, of a user's making, and to read all of it takes seconds:
// this looks at its begin alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/result.hpp"

namespace banyan::ckpt {

struct image_origin {
    std::uint32_t rank = 0, world = 0;
};

/// As __metadata__ says it within the first page, where make_image_header() puts it. Nothing else is checked.
result<image_origin> read_origin(std::span<const std::byte> image);

/// Why another number of ranks cannot begin with it: a region does not say which part of which tensor it is,
/// or more is said than is read for that. Nothing where they can.
result<std::optional<std::string>> why_not_in_parts(std::span<const std::byte> image);

}  // namespace banyan::ckpt
