// SPDX-License-Identifier: BSD-3-Clause
//
// The plan of a job whose nodes Slurm's own select plugin chose: nobody stores one, so everybody who needs it
// makes it, and from the same facts the same. Knows no Slurm, and asks nobody.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "train/options.hpp"
#include "train/plan.hpp"

namespace banyan::train {

/// By which banyan-run tells its srun running_job::before, as a host list. It is the user's to change, as the
/// place of his ranks is: ckptd learns of it by the step alone, and believes no node that is not the job's.
constexpr const char* slots_variable = "BANYAN_SLOT_NODES";

/// What Slurm tells of a job that runs.
struct running_job {
    std::uint32_t job = 0, restart = 0;
    std::vector<std::string> nodes;    ///< that it has now, in Slurm's order
    std::uint32_t nodes_at_start = 0;  ///< of this run, spares included
    std::uint32_t tasks_per_node = 0;  ///< 0 = not said; only with it launchers are known
    /// slot -> node before the newest of its nodes left; empty: none has.
    std::vector<std::string> before{};
};

/// The options from which the plan follows, as their texts stand wherever the caller finds them; hostile. An
/// empty text is an option that was not given.
result<options> options_of_plan(const std::function<std::string(which)>& text_of);

/// The ranks are on the first nodes, in Slurm's order, and the others are spares (plan_in_order); a node that
/// has a slot in `before` keeps it. Of a job with --train-min-dp that has lost nodes the first slots alone
/// have one. What nobody tells is empty: addresses, and the nodes of earlier runs. not_found: the job asked
/// for no ranks; exhausted: too few nodes are left.
result<plan> plan_without_select(const options& asked, const running_job& job);

/// running_job::before of a job whose script was told `nodelist`, that of its start. Empty where it is not.
std::vector<std::string> order_at_start(const options& asked, running_job job, std::string_view nodelist);

}  // namespace banyan::train
