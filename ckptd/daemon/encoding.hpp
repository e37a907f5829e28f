// SPDX-License-Identifier: BSD-3-Clause
//
// The messages of the agreement as JSON, for the wire between daemons of one release. What comes in may be
// anybody's: decode() throws nothing and lets nothing in that is out of range.
#pragma once

#include <span>

#include <nlohmann/json_fwd.hpp>

#include "ckptd/agreement/messages.hpp"
#include "common/result.hpp"

namespace banyan::ckpt::agreement {

/// What a message may name at most.
struct limits {
    std::uint32_t slots = 0;  ///< of the assignment
    std::uint32_t world = 0;
    std::uint64_t max_step = 0;
};

/// Of a `prepare` only the holders of `ranks` go along: those that the receiver's node runs.
nlohmann::json encode(const message& m, std::span<const std::uint32_t> ranks);
/// errc::invalid_input names the field that is not what it should be.
result<message> decode(const nlohmann::json& in, const limits& most);

}  // namespace banyan::ckpt::agreement
