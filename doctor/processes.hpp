// SPDX-License-Identifier: BSD-3-Clause
//
// What runs on this host, as /proc tells it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "common/result.hpp"

namespace banyan::doctor {

struct process {
    uid_t user = 0;
    std::vector<std::string> words;                       ///< its command line
    std::optional<std::vector<std::string>> environment;  ///< "NAME=value"; nothing where we may not read it
};

/// The processes of that name, of at most 15 letters, as the kernel has it. Every user can give a process of
/// his such a name.
result<std::vector<process>> processes_called(const std::string& name);
/// Those of root alone.
result<std::vector<process>> root_processes_called(const std::string& name);

/// The value of a variable in `of`; empty when it is not set, or not known.
std::string variable_in(const process& of, const std::string& name);

/// The slurm.conf that a daemon of Slurm on this host was started with, where that is told apart from the
/// usual places: slurmctld's, else slurmd's.
std::optional<std::string> conf_of_daemons();

}  // namespace banyan::doctor
