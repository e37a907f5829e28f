// SPDX-License-Identifier: BSD-3-Clause
//
// Forward and backward of one stage. Every loop adds in one fixed order; no fused multiply-add (see
// CMakeLists.txt).
#include "examples/trainer/model/stage.hpp"

#include <algorithm>

#include "examples/trainer/hash.hpp"

namespace trainer {
namespace {

using in = std::span<const float>;
using out = std::span<float>;

/// y[b][i] += sum over j of w[i][j] x[b][j]
void multiply(in w, in x, out y, std::size_t rows, std::size_t columns, std::size_t batch) {
    for (std::size_t b = 0; b < batch; ++b)
        for (std::size_t i = 0; i < rows; ++i) {
            float total = 0;
            for (std::size_t j = 0; j < columns; ++j) total += w[i * columns + j] * x[b * columns + j];
            y[b * rows + i] += total;
        }
}

/// x[b][j] += sum over i of w[i][j] y[b][i]
void multiply_transposed(in w, in y, out x, std::size_t rows, std::size_t columns, std::size_t batch) {
    for (std::size_t b = 0; b < batch; ++b)
        for (std::size_t i = 0; i < rows; ++i) {
            const float factor = y[b * rows + i];
            for (std::size_t j = 0; j < columns; ++j) x[b * columns + j] += w[i * columns + j] * factor;
        }
}

/// g[i][j] += sum over b of y[b][i] x[b][j]
void add_outer(in y, in x, out g, std::size_t rows, std::size_t columns, std::size_t batch) {
    for (std::size_t b = 0; b < batch; ++b)
        for (std::size_t i = 0; i < rows; ++i) {
            const float factor = y[b * rows + i];
            for (std::size_t j = 0; j < columns; ++j) g[i * columns + j] += factor * x[b * columns + j];
        }
}

void add(out to, in what) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += what[i];
}

}  // namespace

bool is_last_stage(const identity& self) { return self.place[axis::pp] + 1 == self.sizes[axis::pp]; }

stage::stage(const task& work, const identity& self)
    : hidden_(work.hidden),
      units_(2 * work.hidden / self.sizes[axis::tp]),
      layers_(work.layers / self.sizes[axis::pp]),
      batch_(work.batch),
      layer_weights_(2 * std::size_t{hidden_} * units_ + units_) {}

void stage::forward(std::span<const float> weights, std::vector<float>& x, saved& keep,
                    const tp_sum& sum) const {
    keep.inputs.assign(layers_, {});
    keep.units.assign(layers_, {});
    std::vector<float> y(x.size());
    for (std::uint32_t l = 0; l < layers_; ++l) {
        const auto w = weights.subspan(layer_at(l), layer_weights_);
        const auto matrix = std::size_t{units_} * hidden_;
        std::vector<float> u(std::size_t{batch_} * units_);
        for (std::size_t i = 0; i < u.size(); ++i) u[i] = w[2 * matrix + i % units_];
        multiply(w.first(matrix), x, u, units_, hidden_, batch_);
        for (auto& value : u) value = std::max(value, 0.0F);
        std::ranges::fill(y, 0.0F);
        multiply(w.subspan(matrix, matrix), u, y, hidden_, units_, batch_);
        sum(y);
        keep.inputs[l] = x;
        keep.units[l] = std::move(u);
        add(x, y);
    }
    keep.output = x;
}

float stage::loss(std::span<const float> weights, const saved& keep, std::span<const float> targets,
                  std::vector<float>& dx, std::span<float> gradients) const {
    const auto at = layer_at(layers_);
    const auto head = weights.subspan(at, hidden_);
    dx.assign(activation_count(), 0.0F);
    float total = 0;
    for (std::size_t b = 0; b < batch_; ++b) {
        float answer = 0;
        for (std::size_t j = 0; j < hidden_; ++j) answer += head[j] * keep.output[b * hidden_ + j];
        const float error = answer - targets[b];
        total += error * error;
        for (std::size_t j = 0; j < hidden_; ++j) {
            gradients[at + j] += error * keep.output[b * hidden_ + j];
            dx[b * hidden_ + j] = error * head[j];
        }
    }
    return total;
}

void stage::backward(std::span<const float> weights, const saved& keep, std::vector<float>& dx,
                     std::span<float> gradients, const tp_sum& sum) const {
    for (std::uint32_t l = layers_; l-- > 0;) {
        const auto w = weights.subspan(layer_at(l), layer_weights_);
        const auto g = gradients.subspan(layer_at(l), layer_weights_);
        const auto matrix = std::size_t{units_} * hidden_;
        const auto& u = keep.units[l];
        add_outer(dx, u, g.subspan(matrix, matrix), hidden_, units_, batch_);
        std::vector<float> du(u.size());
        multiply_transposed(w.subspan(matrix, matrix), dx, du, hidden_, units_, batch_);
        for (std::size_t i = 0; i < du.size(); ++i) {
            if (u[i] <= 0.0F) du[i] = 0.0F;
            g[2 * matrix + i % units_] += du[i];
        }
        add_outer(du, keep.inputs[l], g.first(matrix), units_, hidden_, batch_);
        std::vector<float> through(dx.size());
        multiply_transposed(w.first(matrix), du, through, units_, hidden_, batch_);
        sum(through);
        add(dx, through);
    }
}

std::vector<float> initial_weights(const task& work, const identity& self) {
    const auto units = 2 * work.hidden / self.sizes[axis::tp];
    const auto first_unit = units * self.place[axis::tp];
    const auto layers = work.layers / self.sizes[axis::pp];
    const auto first_layer = layers * self.place[axis::pp];
    const float scale = 1.0F / static_cast<float>(work.hidden * work.layers);
    std::vector<float> all;
    const auto weight = [&](std::uint64_t layer, std::uint64_t which, std::uint64_t unit,
                            std::uint64_t other) {
        all.push_back(4.0F * scale * uniform(mix(work.seed, layer, which, unit, other)));
    };
    for (std::uint32_t l = first_layer; l < first_layer + layers; ++l) {
        for (std::uint32_t u = first_unit; u < first_unit + units; ++u)
            for (std::uint32_t j = 0; j < work.hidden; ++j) weight(l, 1, u, j);
        for (std::uint32_t j = 0; j < work.hidden; ++j)
            for (std::uint32_t u = first_unit; u < first_unit + units; ++u) weight(l, 2, u, j);
        all.resize(all.size() + units);
    }
    if (is_last_stage(self)) all.resize(all.size() + work.hidden);
    return all;
}

}  // namespace trainer
