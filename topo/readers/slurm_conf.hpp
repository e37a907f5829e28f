// SPDX-License-Identifier: BSD-3-Clause
//
// The form of Slurm's configuration files: lines of key=value pairs, with host lists in them. The text is not
// trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"

namespace banyan::topo {

/// A host list as Slurm takes it, also with several brackets in a name: "r[1-2]n[01-16],login1". Within the
/// limits of expand_hostlist (common/text.hpp).
result<std::vector<std::string>> expand_slurm_hostlist(std::string_view text);

/// Whether two keys are one: their case does not count.
bool same_word(std::string_view a, std::string_view b);

/// The key=value pairs of a line; a value may stand in double quotes, blanks around the '=' do not count.
class conf_pairs {
  public:
    explicit conf_pairs(std::string_view line) : rest_(line) {}
    using pair = std::pair<std::string_view, std::string_view>;
    std::optional<pair> next();

  private:
    std::string_view rest_;
};

/// The lines without comments, those that end in a backslash joined with the next.
class conf_lines {
  public:
    explicit conf_lines(std::string_view text) : rest_(text) {}
    bool next();  ///< false at the end
    std::string_view line() const { return whole_; }
    std::uint32_t number() const { return began_; }  ///< where the line began, from 1

  private:
    std::string_view rest_;
    std::string whole_;
    std::uint32_t number_ = 0, began_ = 0;
};

}  // namespace banyan::topo
