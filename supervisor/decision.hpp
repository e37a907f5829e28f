// SPDX-License-Identifier: BSD-3-Clause
//
// What follows from the end of a step: a pure function of how it ended, what the allocation was and is, and
// whether the training got further. No clock, no Slurm.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/failure.hpp"

namespace banyan::supervisor {

struct step_end {
    int code = 0;            ///< as a shell sees it: 128 + signal when srun itself was ended by one
    bool cancelled = false;  ///< somebody asked for the end
    std::chrono::milliseconds ran{0};
};

/// The allocation as slurmctld sees it.
struct allocation {
    bool known = true;    ///< false: slurmctld does not answer
    bool running = true;  ///< false: the job is ending, whatever the reason
    std::string state;
    std::vector<std::string> nodes;
    std::string no_requeue;  ///< why the job cannot be put back into the queue; empty when it can
};

/// A first start that ends so soon, and with a code that says so, could not run its program.
constexpr std::chrono::seconds soon{10};

struct situation {
    step_end end;
    std::vector<std::string> nodes_before;  ///< of the allocation when the step began
    allocation now;
    std::uint32_t nodes_needed = 1;
    std::uint32_t nodes_of_all = 1;  ///< for all groups of ranks; more than are needed with --train-min-dp
    bool left = false;        ///< we ended the step, since it ran on a node that had left the allocation
    failure told;             ///< by the step's output; nothing of a step that we ended
    std::string kind_before;  ///< decision::kind of the step before
    bool requeued = false;    ///< this is not the job's first run: what it saved before may not be known yet
    bool planned = false;     ///< the job has a plan (--train-parallel)
    /// Newest complete step; empty = none or unknown. before: which this step had to get beyond.
    std::optional<std::uint64_t> saved_before, saved_after;
    std::uint32_t restarts = 0, idle_restarts = 0;  ///< so far
    std::uint32_t max_restarts = 0, max_idle_restarts = 0;
    bool recovering = false;                    ///< this was a restart, which had not come to train yet
    bool began = true;                          ///< srun had its step; false: it ended without one
    std::chrono::milliseconds stood{0};         ///< of a restart: since the step before it ended
    std::chrono::milliseconds start_within{0};  ///< so long a restart may be without a step
};

enum class action : std::uint8_t {
    finish,
    restart,
    again,  ///< ask once more for the step that Slurm did not give: no restart that counts
    requeue,
    wait
};

struct decision {
    action what = action::finish;
    std::uint32_t idle_restarts = 0;  ///< the new count, when it is restart
    std::string why;                  ///< of an end, a requeue or a wait: empty when nothing is to explain
    std::string kind{};               ///< of the program's own error, that it ended or may end the job
};

decision decide(const situation& s);

/// Nodes that are in `before` and not in `now`.
std::vector<std::string> lost_nodes(const std::vector<std::string>& before,
                                    const std::vector<std::string>& now);

/// How the step ended, and which nodes left the allocation meanwhile, as far as that is known. `step` as
/// below.
std::string end_line(const situation& s, const std::string& step);

/// The line that announces a restart. `step` such as "3.0" or empty when unknown; `spares`: nodes that may
/// now come in.
std::string restart_line(const situation& s, const std::string& step, const std::vector<std::string>& spares);

}  // namespace banyan::supervisor
