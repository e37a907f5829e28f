// SPDX-License-Identifier: BSD-3-Clause
//
// Those messages of the agreement that every step has for every rank, as the body of a frame: 64-bit words in
// the machine's order, as lengths are there. All others go as JSON (encoding.hpp).
#pragma once

#include <span>
#include <vector>

#include "ckptd/agreement/messages.hpp"
#include "ckptd/daemon/encoding.hpp"
#include "common/result.hpp"

namespace banyan::ckpt::agreement {

constexpr std::size_t most_packed = 1u << 20;  ///< bytes in a frame

/// Appends it; false where it is of another kind, or where the frame has no room for it.
bool pack(const message& m, std::vector<std::byte>& out);
/// errc::invalid_input: something is cut off, unknown or out of range.
result<std::vector<message>> unpack(std::span<const std::byte> in, const limits& most);

}  // namespace banyan::ckpt::agreement
