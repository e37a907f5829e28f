// SPDX-License-Identifier: BSD-3-Clause
//
// Samples and their targets.
#include "examples/trainer/model/data.hpp"

#include "examples/trainer/hash.hpp"

namespace trainer {
namespace {

constexpr std::uint64_t plane = 0x706c616e65, sample = 0x73616d706c65;

std::vector<float> undisturbed(const task& work, const identity& self, samples_at at) {
    std::vector<float> out(std::size_t{work.batch} * work.hidden);
    const auto key = mix(work.seed, sample, at.step, self.place[axis::dp], at.micro_batch);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = uniform(mix(key + i));
    return out;
}

}  // namespace

std::vector<float> inputs(const task& work, const identity& self, samples_at at, std::uint64_t random) {
    auto out = undisturbed(work, self, at);
    const auto key = mix(random, at.micro_batch);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += 0.05F * uniform(mix(key + i));
    return out;
}

std::vector<float> targets(const task& work, const identity& self, samples_at at) {
    const auto x = undisturbed(work, self, at);
    std::vector<float> out(work.batch);
    for (std::size_t b = 0; b < out.size(); ++b) {
        float side = 0;
        for (std::size_t j = 0; j < work.hidden; ++j)
            side += uniform(mix(work.seed, plane, j)) * x[b * work.hidden + j];
        out[b] = side > 0 ? 1.0F : -1.0F;
    }
    return out;
}

}  // namespace trainer
