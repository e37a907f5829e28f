// SPDX-License-Identifier: BSD-3-Clause
//
// Where the ranks of a job stand, and which of them keeps the others waiting: pure functions of what the
// ranks' heartbeats say. In a training whose ranks wait for each other at each step one that hangs stops
// them all, and is behind the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "ckptd/buffers/rank_memory.hpp"
#include "common/clock.hpp"
#include "common/result.hpp"

namespace banyan::ckpt {

struct standing {
    std::uint32_t rank = 0;
    std::uint64_t step = 0;
    std::uint32_t phase = 0;  ///< or phase_of_saves
    std::chrono::milliseconds since{0};
    bool late = false;   ///< for far longer than it has stood in this phase before
    char process = '?';  ///< its state, a letter as in proc(5); '?': not known

    bool is_at_the_step_and_phase_of(const standing& other) const {
        return step == other.step && phase == other.phase;
    }
};

/// Late is who stands five times as long as ever before, and ten seconds, at least. A phase that the rank
/// has not left four times before, such as the first evaluation, is late never.
/// Nothing: the rank has said nothing yet.
std::optional<standing> standing_of(const rank_memory_header::heartbeat& beat, std::uint32_t rank,
                                    clock::time_point now);

/// Who keeps the others waiting.
struct hang {
    std::vector<std::uint32_t> ranks;  ///< ascending, never all of them
    std::uint64_t step = 0;            ///< at which the first of them stands
    std::string why;                   ///< without their names: "... for 12 s; the others ..."
    bool operator==(const hang&) const = default;
};

/// `all`: the standings of all ranks of the job. Those that are stopped, else those behind all others by
/// their heartbeats, or by their saves. Nothing where one of the ranks is not late: the others wait for it,
/// as for one that evaluates. Nothing, too, where all are stopped, as by `scontrol suspend`, a debugger has
/// one, or nothing tells one from the others.
std::optional<hang> find_hang(const std::vector<standing>& all);

nlohmann::json to_json(const std::vector<standing>& some);
/// Of ranks below `world`.
result<std::vector<standing>> standings_from(const nlohmann::json& fields, std::uint32_t world);

}  // namespace banyan::ckpt
