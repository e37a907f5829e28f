// SPDX-License-Identifier: BSD-3-Clause
//
// What a sweep makes of the node's state in Slurm: it drains a node that is unfit, and returns one that it
// drained itself, nothing else.
#pragma once

#include <string>
#include <string_view>

#include "fault/slurm/cluster.hpp"
#include "sweep/finding.hpp"

namespace banyan::sweep {

/// Reasons that begin so are the sweep's.
using fault::sweep_reason_prefix;

struct decision {
    enum class step { nothing, drain, resume } what = step::nothing;
    std::string reason{};  ///< of a drain
    std::string told{};    ///< to people: what is done, or why nothing is
};

/// "banyan-sweep: links: 7 InfiniBand ports are active, expected 8", printable and short.
std::string reason_for(const report& r);

/// `whole`: every check that is configured was asked for. Only then, and when all are fit, is a node
/// returned.
decision decide(const fault::node_status& node, const report& r, bool whole);

/// Reads the node's state, decides, and does it; what was told.
result<std::string> settle(fault::cluster& slurm, const std::string& node, const report& r, bool whole);

}  // namespace banyan::sweep
