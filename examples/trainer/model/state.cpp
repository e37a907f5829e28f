// SPDX-License-Identifier: BSD-3-Clause
//
// Making and moving the state. Padding changes one word in each page at each step: enough that no page can be
// taken for that of another step, little enough to cost nothing.
#include "examples/trainer/model/state.hpp"

#include <string>

#include "examples/trainer/failure.hpp"
#include "examples/trainer/hash.hpp"
#include "examples/trainer/model/stage.hpp"

namespace trainer {
namespace {

constexpr std::size_t page_words = 4096 / sizeof(std::uint64_t);

std::uint64_t still_word(std::uint32_t part, std::size_t index) {
    return (index + 1) * 0x9e3779b97f4a7c15U + part;
}
std::uint64_t moving_word(std::uint32_t part, std::size_t index, std::uint64_t step) {
    return mix(part, index, step);
}

void move_padding(state& s, std::uint32_t part) {
    for (std::size_t i = 0; i < s.padding.size(); i += page_words)
        s.padding[i] = moving_word(part, i, s.count.step);
}

}  // namespace

std::size_t state::bytes() const {
    return (weights.size() + momentum.size()) * sizeof(float) + sizeof count +
           padding.size() * sizeof(std::uint64_t);
}

state initial_state(const task& work, const identity& self) {
    state out;
    out.weights = initial_weights(work, self);
    out.momentum.assign(out.weights.size(), 0.0F);
    out.count.random = mix(work.seed, self.place[axis::dp]);
    if (work.state_bytes > out.bytes()) {
        out.padding.resize((work.state_bytes - out.bytes()) / sizeof(std::uint64_t));
        for (std::size_t i = 0; i < out.padding.size(); ++i) out.padding[i] = still_word(model_part(self), i);
        move_padding(out, model_part(self));
    }
    return out;
}

std::uint32_t model_parts(const identity& self) { return self.sizes[axis::tp] * self.sizes[axis::pp]; }

std::uint32_t model_part(const identity& self) {
    return self.place[axis::pp] * self.sizes[axis::tp] + self.place[axis::tp];
}

void keep_own_sequence(state& s, const task& work, const identity& self) {
    s.count.random = mix(work.seed, self.place[axis::dp]);
    for (std::uint64_t step = 0; step < s.count.step; ++step) s.count.random = mix(s.count.random);
}

void advance(state& s, const identity& self) {
    ++s.count.step;
    s.count.random = mix(s.count.random);
    move_padding(s, model_part(self));
}

void check_padding(const state& s, const identity& self) {
    const auto part = model_part(self);
    for (std::size_t i = 0; i < s.padding.size(); ++i) {
        const auto expected = i % page_words == 0 ? moving_word(part, i, s.count.step) : still_word(part, i);
        if (s.padding[i] != expected)
            throw failure("the restored state is not what rank " + std::to_string(self.rank) +
                          " had at step " + std::to_string(s.count.step) + " (word " + std::to_string(i) +
                          ")");
    }
}

}  // namespace trainer
