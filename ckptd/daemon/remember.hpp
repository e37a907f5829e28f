// SPDX-License-Identifier: BSD-3-Clause
//
// What a daemon remembers of a session when it is started again by its keeper, as CBOR. Written and read by
// one host's daemons alone; of another version it is not read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "ckptd/daemon/session.hpp"

namespace banyan::ckpt {

/// Memory that was handed over, by its number at the keeper.
using kept_memory = std::map<std::uint64_t, std::shared_ptr<shard_memory>>;

/// Changes nothing of the session but what it remembers of its request's text.
std::vector<std::uint8_t> remember(session& s);

/// The opposite: into a session whose events, locks and agreement are made. `agreed` is what it had agreed
/// on; copies whose memory is not there, or that a rank has overwritten, are left out of both.
result<void> recall(std::span<const std::byte> text, const kept_memory& memory, session& s,
                    agreement::agreement& agreed);

}  // namespace banyan::ckpt
