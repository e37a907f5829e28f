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

std::uint64_t still_word(std::uint32_t rank, std::size_t index) {
    return (index + 1) * 0x9e3779b97f4a7c15U + rank;
}
std::uint64_t moving_word(std::uint32_t rank, std::size_t index, std::uint64_t step) {
    return mix(rank, index, step);
}

void move_padding(state& s, std::uint32_t rank) {
    for (std::size_t i = 0; i < s.padding.size(); i += page_words)
        s.padding[i] = moving_word(rank, i, s.count.step);
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
        for (std::size_t i = 0; i < out.padding.size(); ++i) out.padding[i] = still_word(self.rank, i);
        move_padding(out, self.rank);
    }
    return out;
}

void advance(state& s, const identity& self) {
    ++s.count.step;
    s.count.random = mix(s.count.random);
    move_padding(s, self.rank);
}

void check_padding(const state& s, const identity& self) {
    for (std::size_t i = 0; i < s.padding.size(); ++i) {
        const auto expected =
            i % page_words == 0 ? moving_word(self.rank, i, s.count.step) : still_word(self.rank, i);
        if (s.padding[i] != expected)
            throw failure("the restored state is not what rank " + std::to_string(self.rank) +
                          " had at step " + std::to_string(s.count.step) + " (word " + std::to_string(i) +
                          ")");
    }
}

}  // namespace trainer
