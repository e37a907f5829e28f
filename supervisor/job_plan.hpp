// SPDX-License-Identifier: BSD-3-Clause
//
// What the job's plan, and the nodes that are left, mean for the next step: the words of srun, and what its
// environment tells it. No Slurm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/plan_summary.hpp"
#include "train/plan_without_select.hpp"

namespace banyan::supervisor {

/// What a step needs to know of the job's plan; all zero or empty for a job without one.
struct job_plan {
    std::uint32_t nodes = 0, ranks = 0;
    std::uint32_t tasks = 0;  ///< of a step: the ranks, or a launcher on each node
    std::vector<std::string> spares;
    std::optional<std::uint32_t> component;  ///< of a heterogeneous job
    std::optional<topo::request> elastic{};  ///< of a job with --train-min-dp: what it asked for
    std::uint32_t min_nodes = 0;             ///< of that one
    /// That a later run may have again, the spares among them; 0: nobody keeps the nodes of this run
    /// meanwhile.
    std::uint32_t nodes_of_all = 0;
    /// Of a job whose nodes Slurm's own plugin chose: from which its plan follows. Nobody else keeps it.
    std::optional<train::options> asked{};
    train::running_job told{};
};
/// The same for the nodes that are left: with fewer groups of ranks, where the job may do with those.
job_plan plan_on(const job_plan& plan, std::size_t nodes);
job_plan plan_of(const train::plan_summary& told);
/// Of a job whose nodes Slurm's own plugin chose, on the nodes that it began with.
result<job_plan> plan_of(const train::options& asked, train::running_job told);
/// A node of it may have left: its slot goes to a spare, and the next srun is told which node has which slot.
/// Nothing where slurmctld keeps the plan.
void follow_losses(job_plan& plan, const std::vector<std::string>& nodes);

/// The spares that the next step does not need, the last of the plan first, when the allocation has `nodes`.
std::vector<std::string> spares_to_leave_out(const job_plan& plan, const std::vector<std::string>& nodes);

/// srun and all its words for an allocation of `nodes`. With a plan, -N, -n and --exclude follow from it
/// unless the user's own words, which come later, say else. `recovering`: srun is to end soon when Slurm has
/// no step for it.
std::vector<std::string> srun_words(const job_plan& plan, const std::vector<std::string>& nodes,
                                    const std::vector<std::string>& given, bool recovering = false);

/// Corrects the words by which the environment of the batch script tells srun how large the allocation once
/// was. srun makes the nodes of a step from them where it is to leave some out, and with a lost one among
/// them Slurm refuses the step. In a heterogeneous job each component has words of its own.
void correct_environment(const std::vector<std::string>& nodes, std::optional<std::uint32_t> component);

}  // namespace banyan::supervisor
