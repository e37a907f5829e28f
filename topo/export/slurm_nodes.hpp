// SPDX-License-Identifier: BSD-3-Clause
//
// Which nodes a Slurm has, from a host list or from the NodeName lines of its slurm.conf. Text alone: no part
// of Slurm is linked or asked. The text is not trusted.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "topo/readers/slurm_conf.hpp"

namespace banyan::topo {

struct slurm_nodes {
    std::vector<std::string> names;  ///< as Slurm calls them, ascending, each once
    std::map<std::string, std::string>
        by_hostname;        ///< NodeHostname -> NodeName, where a line gives one for each
    bool includes = false;  ///< the text has Include lines, which were not followed
};

constexpr std::size_t max_slurm_nodes = 65'536;
constexpr std::size_t max_slurm_conf_bytes = std::size_t{64} << 20;

/// Of --nodes. An error where the list is empty or cannot be read.
result<slurm_nodes> nodes_of_hostlist(std::string_view hostlist);

/// Of a slurm.conf; `name` of the file is for messages. Keys in any case, comments, continued lines, and
/// NodeName=DEFAULT are understood. An error names the line; also where no line declares a node.
result<slurm_nodes> nodes_of_slurm_conf(std::string_view text, const std::string& name);

}  // namespace banyan::topo
