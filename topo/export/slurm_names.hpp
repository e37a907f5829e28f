// SPDX-License-Identifier: BSD-3-Clause
//
// Names that a Slurm file can hold. Descriptions in a dump are free text: none of it may open a bracket, a
// comment or a line of its own.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace banyan::topo {

/// Letters, digits, '.', '_' and '-', at most 64 of them: what Slurm takes as a node or switch name.
bool is_slurm_name(std::string_view name);

/// Hands out switch and block names: odd characters become '-', a name that is taken gets a number.
class slurm_namer {
  public:
    std::string operator()(std::string_view wanted);

  private:
    std::set<std::string> taken_;
};

/// Text for a comment: what is not printable ASCII becomes '?', and so does a backslash, which continues a
/// line.
std::string comment_text(std::string_view text);

/// "n2" before "n10"; names of one form beside each other.
bool by_number(const std::string& a, const std::string& b);

/// A host list of the names, sorted by number.
std::string sorted_hostlist(std::vector<std::string> names);

}  // namespace banyan::topo
