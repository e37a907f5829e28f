// SPDX-License-Identifier: BSD-3-Clause
//
// Steps in a directory that is open already, for the other files here. As the user already.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.hpp"
#include "common/result.hpp"

namespace banyan::ckpt {

/// A committed step that another one of the same number is about to replace.
constexpr std::string_view replaced_prefix = ".replaced.";
std::string replaced_name(std::uint64_t step);
/// Of the rank in a shard's name, at least.
constexpr std::size_t shard_digits = 6;
bool is_there(int folder, const std::string& name);
/// The name under which readers find a step in its directory.
std::string present_name(int top, std::uint64_t step);

/// The directory of a step that was there: one that is missing is not mounted, which says nothing of the step
/// (errc::unavailable).
result<unique_fd> open_for_reading(const std::string& dir);
/// A step's folder, for reading.
result<unique_fd> open_step_folder(int top, const std::string& dir, std::uint64_t step);
/// What of a step that could not be looked at: it is listed where the others must not stand for it, and
/// whoever reads it hears why; it is left out where something is done to those that are committed.
enum class unseen : std::uint8_t { listed, left_out };
/// Committed steps, newest first, at most max_listed_steps.
result<std::vector<std::uint64_t>> committed_in(int top, const std::string& dir, unseen of = unseen::listed);
/// `latest` names the newest committed step again; where there is none it goes.
result<void> renew_latest(int top, const std::string& dir);

}  // namespace banyan::ckpt
