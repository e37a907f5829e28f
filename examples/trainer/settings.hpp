// SPDX-License-Identifier: BSD-3-Clause
//
// All that a rank is told: what to train from its flags, who it is from its environment. Read once, then a
// value.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "examples/trainer/shape.hpp"

namespace trainer {

/// The same on every rank, else training would not be one computation; digest() lets the ranks check that.
struct task {
    std::uint64_t steps = 100, seed = 1, state_bytes = 0;
    std::uint32_t hidden = 64, layers = 4, micro_batches = 2, batch = 8;
    float learning_rate = 0.05F, momentum = 0.9F;
    std::string stop_file;  ///< when set: after `steps` train on until this file is there
    std::uint64_t digest() const;
};

struct identity {
    std::uint32_t rank = 0, world = 1;
    coordinates sizes, place;
    std::string shape_text, node;
    std::string master_addr;
    std::uint16_t master_port = 0;
    std::string run;           ///< job and step: a rank of an earlier step is refused
    bool checkpoints = false;  ///< a checkpoint daemon was promised
    std::uint64_t checkpoint_every = 1;
};

struct settings {
    task work;
    identity self;
    std::chrono::milliseconds step_time{0}, start_timeout{60000}, peer_timeout{15000};
    std::string log;
};

/// Reads RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, BANYAN_*; throws failure naming the variable that is
/// wrong.
identity identity_from_environment();
/// Refuses sizes that do not divide by the shape.
void check(const task& work, const identity& self);
/// Reads the command line and the environment; a number = exit at once with it (--help, wrong flag).
std::optional<int> read_settings(int argc, char** argv, settings& out);

}  // namespace trainer
