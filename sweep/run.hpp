// SPDX-License-Identifier: BSD-3-Clause
//
// One sweep: all looks, each in a child process, within the time that it has.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "sweep/checks.hpp"

namespace banyan::sweep {

/// Whether a job has the node, as Slurm says. Runs in a child process.
using ask_busy = std::function<result<bool>()>;

struct sweep_options {
    std::vector<check> checks{};
    place where{};
    bool even_if_busy = false;
    /// How long the one may take, and then the other; what the first leaves the second has, too.
    std::chrono::steady_clock::duration looking{}, measuring{};
};

report sweep_node(const sweep_options& o, const ask_busy& busy);

}  // namespace banyan::sweep
