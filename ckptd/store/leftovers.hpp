// SPDX-License-Identifier: BSD-3-Clause
//
// Names of a checkpoint directory that are no steps (yet, or any more), and how they go. By descriptor of the
// directory, as the user already.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"

namespace banyan::ckpt {

/// A step that is being gathered: ".flush.JOB.GENERATION.RANDOM".
constexpr std::string_view flush_prefix = ".flush.";
/// What nobody needs, on its way out.
constexpr std::string_view trash_prefix = ".trash.";

/// Whether a name that another node has sent is that of a flush's folder, and nothing else.
bool is_flush_name(std::string_view name);

/// Whether banyan gives that name to a file of a step, or a temporary one; COMMIT apart.
bool is_in_a_step(std::string_view name);

/// A folder in `top` goes: out of sight by one rename, then with its files. What somebody else has put into
/// it stays, and with that the folder.
result<void> put_away(int top, const std::string& name, const std::string& dir);
/// All flushes' folders, what was on its way out, and steps that never became complete. Only a directory's
/// owner may do that, before a flush of its own begins.
result<void> put_away_flushes(int top, const std::string& dir);

}  // namespace banyan::ckpt
