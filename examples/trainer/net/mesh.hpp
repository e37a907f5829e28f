// SPDX-License-Identifier: BSD-3-Clause
//
// The direct connections of one rank: to its neighbours along the pipeline, and between each member and the
// first of its tensor and data parallel groups. Reductions add in the order of the group's coordinate, so
// that the sum has the same bits wherever the ranks run.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "examples/trainer/net/rendezvous.hpp"
#include "examples/trainer/net/stream.hpp"

namespace trainer {

class mesh {
  public:
    /// Connects to all ranks that this one exchanges data with; the lower rank of a pair accepts.
    mesh(const settings& conf, const table& ranks, int listener);

    /// Every member's `data` becomes the sum over the group along `a` (tp or dp).
    void all_reduce(axis a, std::uint32_t tag, std::span<float> data);
    /// To and from the next (+1) or previous (-1) pipeline stage.
    void send(int direction, std::uint32_t tag, std::span<const float> data);
    void receive(int direction, std::uint32_t tag, std::span<float> data);
    /// Whether any rank of the whole training says so: the same answer on every rank.
    bool any(std::uint32_t tag, bool mine);

  private:
    const std::vector<std::uint32_t>& group(axis a) const { return a == axis::tp ? tp_ : dp_; }
    stream& stage(int direction);

    std::uint32_t rank_;
    std::vector<std::uint32_t> tp_, pp_, dp_;
    std::map<std::uint32_t, stream> peers_;
    std::vector<float> incoming_;
};

}  // namespace trainer
