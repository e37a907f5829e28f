// SPDX-License-Identifier: BSD-3-Clause
//
// Where the ranks of a running job sit, as scontrol tells it.
#pragma once

#include <cstdint>
#include <string>

#include <banyan/topo/fabric.hpp>

#include "common/result.hpp"
#include "train/plan.hpp"

namespace banyan::topo::cli {

struct running_job {
    std::string id;
    /// Of a job whose nodes Slurm chose, which scontrol does not tell: its ranks are in Slurm's order.
    std::string shape;
    std::uint32_t spares = 0;
    std::string program = "scontrol";
};

/// A plan with all that the cost of its placement follows from. An error where the job does not run, was not
/// placed by banyan and no shape is given, or has a node that is not on the fabric.
result<train::plan> plan_of(const fabric& f, const running_job& job);

}  // namespace banyan::topo::cli
