// SPDX-License-Identifier: BSD-3-Clause
//
// The training data: made up from where it stands (seed, step, replica, micro-batch), so that no file is
// needed and any rank of a replica can make its part by itself.
#pragma once

#include <cstdint>
#include <vector>

#include "examples/trainer/settings.hpp"

namespace trainer {

struct samples_at {
    std::uint64_t step = 0;
    std::uint32_t micro_batch = 0;
};

/// batch x hidden inputs, disturbed a little by the random sequence of the state.
std::vector<float> inputs(const task& work, const identity& self, samples_at at, std::uint64_t random);
/// One target of +1 or -1 for each sample: on which side of a hidden plane it lies.
std::vector<float> targets(const task& work, const identity& self, samples_at at);

}  // namespace trainer
