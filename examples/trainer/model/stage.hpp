// SPDX-License-Identifier: BSD-3-Clause
//
// The layers of one pipeline stage, as one tensor parallel rank holds them. A layer is
//     y = x + sum over tp of W2 * relu(W1 * x + b1)
// with W1 split by columns of the product (each rank has some of the hidden units) and W2 by rows, so that a
// layer needs one sum over tp forward and one backward. The last stage ends in one linear unit and the
// squared error.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "examples/trainer/settings.hpp"

namespace trainer {

/// Adds a buffer over the tensor parallel group, in place.
using tp_sum = std::function<void(std::span<float>)>;

/// Values that the backward pass of one micro-batch needs again.
struct saved {
    std::vector<std::vector<float>> inputs, units;  ///< per layer
    std::vector<float> output;
};

class stage {
  public:
    stage(const task& work, const identity& self);

    std::size_t activation_count() const { return std::size_t{batch_} * hidden_; }
    /// `x` becomes the stage's output.
    void forward(std::span<const float> weights, std::vector<float>& x, saved& keep, const tp_sum& sum) const;
    /// Sum of squared errors; `dx` gets the gradient of its half. Only on the last stage.
    float loss(std::span<const float> weights, const saved& keep, std::span<const float> targets,
               std::vector<float>& dx, std::span<float> gradients) const;
    /// `dx`: gradient at the output, becomes the gradient at the input; adds to `gradients`.
    void backward(std::span<const float> weights, const saved& keep, std::vector<float>& dx,
                  std::span<float> gradients, const tp_sum& sum) const;

  private:
    std::size_t layer_at(std::uint32_t layer) const { return layer * layer_weights_; }

    std::uint32_t hidden_, units_, layers_, batch_;
    std::size_t layer_weights_;
};

/// A weight depends on the seed and its place in the whole model, not on how the model is cut.
std::vector<float> initial_weights(const task& work, const identity& self);

bool is_last_stage(const identity& self);

}  // namespace trainer
