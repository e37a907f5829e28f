// SPDX-License-Identifier: BSD-3-Clause
//
// How many bytes the dimensions of a job move in one training step, and over which tier of the fabric a
// placement makes them go. Analytic: it ranks placements, it predicts no step time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <banyan/topo/fabric.hpp>
#include <banyan/topo/placement.hpp>
#include <banyan/topo/routing.hpp>
#include <banyan/topo/shape.hpp>
#include <banyan/topo/tier.hpp>

#include "common/result.hpp"

namespace banyan::topo {

/// Bytes that one rank sends in one step to each neighbour along a dimension: its successor on the ring (tp,
/// cp, dp), either neighbour of the pipeline (pp), every other member (ep, and cp by cp_scheme::all_to_all).
using traffic = by_dimension<double>;

/// Per edge of each dimension, in bf16 (2 bytes), sequence parallel, distributed optimizer:
///   tp   ring share (t-1)/t of a sequence's activations, 8 collectives a layer (4 forward, 4 backward)
///   cp   keys and values passed round the ring of each layer, forward once and backward twice; or by
///        cp_scheme::all_to_all queries, keys, values and what comes of them exchanged, forward and backward
///   ep   a member's share of the tokens, out and back, forward and backward, in each layer
///   pp   the activations at a stage's edge, and their gradients back
///   dp   gradients reduced and parameters gathered: 2 (d-1)/d of a rank's parameters
/// with 12 hidden^2 parameters a layer (Kaplan et al. 2020, section 2.1; embeddings left out).
traffic traffic_of(const shape& dims, const model_size& model);

/// Whose bytes stand for those of a job that names no model: dense models of 7 and 70 billion parameters, and
/// one of eight experts (8x22B).
inline constexpr std::array usual_models{model_size{4096, 32, 4096, 8}, model_size{},
                                         model_size{6144, 56, 8192, 8}};

/// What placement weighs an edge of each dimension by: its bytes, of the request's model, or else of the
/// usual models together.
traffic weights_of(const request& r);

/// "hidden=8192,layers=80,seq=8192,micro=16,cp=ring" (or cp=all-to-all): what is left out keeps its default.
result<model_size> parse_model(std::string_view text);
/// As parse_model takes it, without cp=ring.
std::string text_of(const model_size& m);

/// One dimension of a placed job.
struct dimension_cost {
    dimension dim = dimension::tp;
    std::uint32_t groups = 0;            ///< process groups of that dimension
    std::uint32_t over_leaf_groups = 0;  ///< of them, with members in more than one leaf group
    std::uint32_t over_spine_groups = 0;
    std::uint32_t largest_spread = 0;  ///< leaf groups that one process group touches, at most
    /// Of the ranks that send to each other, by the tier where they meet.
    by_tier<std::uint64_t> edges{};
    by_tier<double> bytes{};  ///< that they send in a step
};

/// Bytes are those of the request's model, or of the default one.
struct placement_cost {
    std::vector<dimension_cost> dimensions;  ///< those of size > 1, in the order of `dimension`
    by_tier<double> bytes{};                 ///< over all dimensions
    double weighted = 0;                     ///< weights_of times fabric::tier_cost: what placement minimises
    /// Bytes per step on the busiest uplink of a leaf if a rail's traffic spreads evenly over its uplinks, as
    /// adaptive routing does at best; 0 when nothing leaves a leaf or the fabric has no uplinks.
    double busiest_uplink = 0;

    double above_leaf() const { return bytes[tier::spine] + bytes[tier::core] + bytes[tier::wan]; }
};

/// Cost: O(ranks x dimensions). Slots whose host has no leaf group count as tier wan of everybody else.
placement_cost cost_of(const fabric& f, const request& r, const placement& p);

/// placement_cost::weighted alone, for slurmctld. Cost: O(nodes x dimensions); with expert parallel groups
/// whose ranks' distance and ranks per node do not divide each other up to O(ranks).
double weighted_cost(const fabric& f, const request& r, const placement& p);

struct link_load {
    double bytes = 0;                 ///< per step, on the busiest direction of a link between switches
    port_ref from;                    ///< the switch port that sends them
    std::uint64_t without_route = 0;  ///< pairs of ranks for which the tables have no way; they are left out
};

/// With every pair of ranks on the way that the forwarding tables give it: the bound of static routing, as
/// placement_cost::busiest_uplink is that of adaptive routing.
link_load busiest_link(const fabric& f, const request& r, const placement& p, const routing& tables);

}  // namespace banyan::topo
