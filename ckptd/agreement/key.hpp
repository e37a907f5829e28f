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

/// A generation from requeue count and step id; 0 is left for checkpoints of other jobs.
constexpr std::uint64_t make_generation(std::uint32_t restart, std::optional<std::uint32_t> step) {
    return ((static_cast<std::uint64_t>(restart) + 1) << 32) |
           (step ? static_cast<std::uint64_t>(*step) + 1 : 0);
}

/// Whether a step of the job has begun in `generation`; before, only the session is open.
constexpr bool has_step(std::uint64_t generation) { return static_cast<std::uint32_t>(generation) != 0; }

}  // namespace banyan::ckpt
