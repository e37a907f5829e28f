// SPDX-License-Identifier: BSD-3-Clause
//
// The names of checkpoints, and their order.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

namespace banyan::ckpt {

/// Names one checkpoint of a job. A generation begins with every requeue and every new step of the job; a
/// later one is newer whatever its step numbers, for it continues from what was chosen at its start.
struct copy_key {
    std::uint64_t generation = 0;
    std::uint64_t step = 0;
    auto operator<=>(const copy_key&) const = default;
};

/// A generation is a launch of the job's ranks and, in the low bits, a round in it, for ranks that are
/// started again within the launch.
constexpr unsigned round_bits = 12;
constexpr unsigned step_bits = 32;
constexpr std::uint32_t max_restart = (1u << (64 - step_bits - round_bits)) - 2;

/// The first round of a launch, from requeue count (at most max_restart) and step id; a job without steps has
/// one launch. 0 is left for checkpoints of other jobs.
constexpr std::uint64_t make_generation(std::uint32_t restart, std::optional<std::uint32_t> step) {
    return ((static_cast<std::uint64_t>(restart) + 1) << (step_bits + round_bits)) |
           (step ? (static_cast<std::uint64_t>(*step) + 1) << round_bits : 0);
}
constexpr std::uint64_t first_round(std::uint64_t generation) {
    return generation >> round_bits << round_bits;
}
constexpr std::uint64_t last_round(std::uint64_t generation) {
    return first_round(generation) + (1u << round_bits) - 1;
}

/// Whether a step of the job has begun in `generation`; before, only the session is open.
constexpr bool has_step(std::uint64_t generation) {
    return static_cast<std::uint32_t>(generation >> round_bits) != 0;
}

}  // namespace banyan::ckpt
