// SPDX-License-Identifier: BSD-3-Clause
//
// Steps that stay in storage beside the newest ones, by name. DIR/milestones/NAME is a file with the number
// of the step that somebody asked for. Steps reach storage in turns: a milestone is the oldest committed step
// that is no older than that number, and its name may be there before it. All calls block as storage does.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ckptd/store/as_user.hpp"
#include "common/result.hpp"

namespace banyan::ckpt {

constexpr std::string_view milestones_folder = "milestones";
constexpr std::size_t max_milestones = 4096;  ///< of a directory

/// The steps that were asked for, by the milestones' names.
using milestones = std::map<std::string, std::uint64_t>;

/// The committed step that one is; nothing where all are older.
std::optional<std::uint64_t> milestone_step(const std::vector<std::uint64_t>& committed, std::uint64_t asked);

/// All of a directory, as its committed steps are now.
struct named_steps {
    std::map<std::uint64_t, std::vector<std::string>> at;
    milestones pending;  ///< those that are no step yet
};
named_steps assign_milestones(const milestones& all, const std::vector<std::uint64_t>& committed);

/// The name of the milestone that `step` becomes where every `every`th step is to stay (0 = none): the first
/// committed one at or after each multiple. Nothing: it becomes none.
std::optional<std::string> milestone_due(const std::vector<std::uint64_t>& committed, std::uint64_t step,
                                         std::uint64_t every);

/// Gives the name to a step, which need not be there yet; one that has the name loses it.
/// errc::invalid_input: that is no name. errc::exhausted: there are max_milestones others.
result<void> set_milestone(const storage_user& user, const std::string& dir, const std::string& name,
                           std::uint64_t step);
/// What cannot be read is an error: a step whose name is not seen would not stay.
result<milestones> list_milestones(const storage_user& user, const std::string& dir);
/// The name goes, the step stays. errc::not_found: there is none of this name.
result<void> drop_milestone(const storage_user& user, const std::string& dir, const std::string& name);

/// DIR/milestones/NAME taken apart; nothing where the path is no milestone's file.
struct milestone_path {
    std::string dir, name;
};
std::optional<milestone_path> milestone_of(const std::string& path);
/// The step that it is. errc::not_found: it has not reached storage yet.
result<std::uint64_t> find_milestone(const storage_user& user, const milestone_path& at);

}  // namespace banyan::ckpt
