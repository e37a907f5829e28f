// SPDX-License-Identifier: BSD-3-Clause
//
// All that must survive for training to go on as if nothing had happened: weights, momentum, the step, the
// random sequence, and padding that stands for what a large model would have. Owns memory only; knows nothing
// of saving.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "examples/trainer/settings.hpp"

namespace trainer {

struct counters {
    std::uint64_t step = 0;    ///< steps that are done
    std::uint64_t random = 0;  ///< the sequence that disturbs the samples; moves once a step
};

struct state {
    std::vector<float> weights, momentum;
    counters count;
    std::vector<std::uint64_t> padding;

    std::size_t bytes() const;
};

/// The state before the first step, as the seed says.
state initial_state(const task& work, const identity& self);
/// Into how many parts tensor and pipeline parallelism cut the model, and which of them this rank has: that
/// of its peers in every data parallel group, too.
std::uint32_t model_parts(const identity& self);
std::uint32_t model_part(const identity& self);
/// What is restored may be what another data parallel group had: the random sequence is its own again, as if
/// the rank had been there from the first step on.
void keep_own_sequence(state& s, const task& work, const identity& self);
/// Moves step, random sequence and padding on by one step.
void advance(state& s, const identity& self);
/// Throws failure unless the padding is what the step wrote: a save that is torn or of another rank shows
/// here.
void check_padding(const state& s, const identity& self);

}  // namespace trainer
