// SPDX-License-Identifier: BSD-3-Clause
//
// Heterogeneous jobs: each component has --train options of its own, and one of them may train. Slurm knows
// one set of a plugin's options a process, and one environment a batch script: what a component was given
// stands in variables that bear its number.
#pragma once

#include <cstdint>
#include <string>

#include "train/options.hpp"

namespace banyan::train {

/// Such as BANYAN_TRAIN_PARALLEL_HET_GROUP_1.
inline std::string component_variable(which option, std::uint32_t component) {
    return std::string(option_names[option].variable) + "_HET_GROUP_" + std::to_string(component);
}

constexpr const char* second_training_component =
    "two components of a heterogeneous job have --train-parallel; one may";

}  // namespace banyan::train
