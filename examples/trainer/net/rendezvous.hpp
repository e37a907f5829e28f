// SPDX-License-Identifier: BSD-3-Clause
//
// How the ranks find each other: rank 0 listens on MASTER_PORT, every rank registers the port of its own
// listener and what it believes about the run, and gets the table of all ranks. Ranks that do not agree about
// the run are refused.
#pragma once

#include <cstdint>
#include <vector>

#include "examples/trainer/net/stream.hpp"
#include "examples/trainer/settings.hpp"

namespace trainer {

struct table {
    std::vector<sockaddr_in> addresses;  ///< by rank: where its listener is
    std::vector<coordinates> places;     ///< by rank
};

/// `listener` is this rank's own; `step` is the step its state stands at (all ranks must stand at the same).
/// Ends within `conf.start_timeout` with the table or a failure.
table meet(const settings& conf, int listener, std::uint64_t step);

}  // namespace trainer
