// SPDX-License-Identifier: BSD-3-Clause
//
// slurm.conf as this host has it, read as Slurm reads it: for what slurmctld cannot be asked, since it does
// not run or because it is about this host alone.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "doctor/slurm.hpp"

namespace banyan::doctor {

struct slurm_file {
    std::filesystem::path path;
    slurm_config config;  ///< the keys that checks ask for, as slurmctld prints them, defaults filled in
    std::vector<slurm_node> nodes;
    bool own_plugstack = false;  ///< PlugStackConfig stands in the file
};

/// $SLURM_CONF, else the one that exists of Slurm's usual places; the copy that a node without one got from
/// slurmctld comes last.
std::optional<std::filesystem::path> find_slurm_conf();

/// With what it includes. Keys in any case, comments, continued lines, lists of nodes.
result<slurm_file> read_slurm_conf(const std::filesystem::path& file);

}  // namespace banyan::doctor
