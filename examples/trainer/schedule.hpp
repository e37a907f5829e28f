// SPDX-License-Identifier: BSD-3-Clause
//
// One training step of one rank: all micro-batches forward through the pipeline, then all backward (GPipe),
// gradients summed over the replicas, weights moved.
#pragma once

#include <vector>

#include "examples/trainer/model/stage.hpp"
#include "examples/trainer/model/state.hpp"
#include "examples/trainer/net/mesh.hpp"

namespace trainer {

class schedule {
  public:
    schedule(const task& work, const identity& self, mesh& peers);

    /// Trains one step and advances `s`. The mean loss of all replicas on the last stage, elsewhere 0.
    float step(state& s);

  private:
    void forward(const state& s, std::uint32_t micro_batch);
    void backward(const state& s, std::uint32_t micro_batch);
    void update(state& s);
    std::uint32_t tag(std::uint64_t step, std::uint32_t micro_batch) const;

    const task& work_;
    const identity& self_;
    mesh& peers_;
    stage stage_;
    bool first_, last_;
    std::vector<saved> kept_;
    std::vector<float> gradients_;  ///< of all weights, and on the last stage the loss behind them
};

}  // namespace trainer
