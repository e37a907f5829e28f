// SPDX-License-Identifier: BSD-3-Clause
//
// How far the training is, as this node's checkpoint daemon knows: the newest complete step, and which rank
// hangs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace banyan::supervisor {

/// The daemon's socket: $BANYAN_CKPT_SOCKET, else from banyan.conf with `node` for %n; empty when there is
/// none.
std::string checkpoint_socket(const std::string& node);

/// Asks the daemon; nullopt when it does not answer at once or has no complete step of the job.
std::optional<std::uint64_t> newest_saved(const std::string& socket, std::uint32_t job);

/// Ranks that keep all others waiting, as the daemons of the job have found.
struct hang {
    std::vector<std::uint32_t> ranks;
    std::uint64_t step = 0;  ///< at which the first of them stands
    std::string text;
};
/// Asks the daemon; nullopt when it does not answer at once or knows of none.
std::optional<hang> hang_of(const std::string& socket, std::uint32_t job);

/// Both from the daemon's status text.
std::optional<std::uint64_t> newest_in_status(std::string_view json, std::uint32_t job);
std::optional<hang> hang_in_status(std::string_view json, std::uint32_t job);

/// For the history of incidents: the step is not started again.
result<void> give_up_at(const std::string& socket, std::uint32_t job, std::uint32_t step,
                        const std::string& why);

}  // namespace banyan::supervisor
