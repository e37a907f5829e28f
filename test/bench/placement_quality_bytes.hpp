// SPDX-License-Identifier: BSD-3-Clause
//
// What a placed job sends, counted by itself: from rank to rank, with the bytes of three models by the
// textbook. It shares no code with placement: neither the traffic model, nor the communication graph, nor the
// tiers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include <banyan/topo/fabric.hpp>
#include <banyan/topo/placement.hpp>

namespace banyan::topo::quality {

/// A model as users size it, and as --train-model takes it.
struct known_model {
    const char* name;
    double hidden, layers, sequence, sequences;  ///< tokens; that go through one pipeline in a step
};
inline constexpr std::array models{known_model{"dense 7B", 4096, 32, 4096, 8},
                                   known_model{"dense 70B", 8192, 80, 8192, 16},
                                   known_model{"MoE, 8 experts", 6144, 56, 8192, 8}};

/// One number for each of `models`.
using by_model = std::array<double, models.size()>;
double sum(const by_model& all);

/// A job whose ranks are cut into nodes in one way.
class counted_job {
  public:
    /// `node_of_rank`: which of the job's nodes, from 0 on, runs a rank.
    counted_job(const shape& dims, const std::vector<std::uint32_t>& node_of_rank);

    /// Bytes in a step, each by what the tier costs that it crosses. `hosts`: of the job's nodes.
    by_model weighted(const fabric& f, const std::vector<std::uint32_t>& hosts) const;
    /// Bytes that the ranks of a node send along `d` to other nodes, on the average.
    by_model leaving(dimension d) const;

  private:
    struct flow {
        std::uint32_t from, to;  ///< nodes
        dimension along;
        double sends;
    };
    std::vector<flow> flows_;
    std::array<by_dimension<double>, models.size()> bytes_{};  ///< of one send
    std::uint32_t nodes_ = 0;
};

}  // namespace banyan::topo::quality
