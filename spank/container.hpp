// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "spank/spank_slurm.hpp"

namespace banyan::spank {

struct task_variable {
    std::string name, value;
    bool replaces = true;  ///< what the user has set
};

/// In a task, as its user: the variables reach the container in which it is to run. Nothing where it runs in
/// none.
result<void> tell_container(spank_t sp, const std::vector<task_variable>& variables);

}  // namespace banyan::spank
