// SPDX-License-Identifier: BSD-3-Clause
//
// The order of a step. No two neighbours ever send to each other at the same time (first all forward, then
// all backward), so no size of message can make them wait for each other.
#include "examples/trainer/schedule.hpp"

#include <algorithm>

#include "examples/trainer/model/data.hpp"

namespace trainer {

schedule::schedule(const task& work, const identity& self, mesh& peers)
    : work_(work),
      self_(self),
      peers_(peers),
      stage_(work, self),
      first_(self.place[axis::pp] == 0),
      last_(is_last_stage(self)),
      kept_(work.micro_batches) {}

std::uint32_t schedule::tag(std::uint64_t step, std::uint32_t micro_batch) const {
    return static_cast<std::uint32_t>(step * work_.micro_batches + micro_batch);
}

float schedule::step(state& s) {
    gradients_.assign(s.weights.size() + (last_ ? 1 : 0), 0.0F);
    for (std::uint32_t m = 0; m < work_.micro_batches; ++m) forward(s, m);
    for (std::uint32_t m = 0; m < work_.micro_batches; ++m) backward(s, m);
    peers_.all_reduce(axis::dp, tag(s.count.step, 0), gradients_);
    const auto samples = static_cast<float>(work_.batch * work_.micro_batches * self_.sizes[axis::dp]);
    for (auto& g : gradients_) g /= samples;
    const float loss = last_ ? gradients_.back() : 0.0F;
    update(s);
    advance(s, self_);
    return loss;
}

void schedule::forward(const state& s, std::uint32_t m) {
    const auto t = tag(s.count.step, m);
    std::vector<float> x(stage_.activation_count());
    if (first_)
        x = inputs(work_, self_, {s.count.step, m}, s.count.random);
    else
        peers_.receive(-1, t, x);
    stage_.forward(s.weights, x, kept_[m], [&](std::span<float> y) { peers_.all_reduce(axis::tp, t, y); });
    if (!last_) peers_.send(+1, t, x);
}

void schedule::backward(const state& s, std::uint32_t m) {
    const auto t = tag(s.count.step, m);
    std::vector<float> dx(stage_.activation_count());
    if (last_)
        gradients_.back() +=
            stage_.loss(s.weights, kept_[m], targets(work_, self_, {s.count.step, m}), dx, gradients_);
    else
        peers_.receive(+1, t, dx);
    stage_.backward(s.weights, kept_[m], dx, gradients_,
                    [&](std::span<float> y) { peers_.all_reduce(axis::tp, t, y); });
    if (!first_) peers_.send(-1, t, dx);
}

void schedule::update(state& s) {
    for (std::size_t i = 0; i < s.weights.size(); ++i) {
        s.momentum[i] = work_.momentum * s.momentum[i] + gradients_[i];
        s.weights[i] -= work_.learning_rate * s.momentum[i];
    }
}

}  // namespace trainer
