// SPDX-License-Identifier: GPL-2.0-or-later
//
// A job's AdminComment: banyan's line, and behind a mark what an administrator wrote there. The line is for
// people: it is there as long as it is true, whoever writes the rest, and nothing is read from it.
#pragma once

#include <string>
#include <string_view>

#include "slurmctld-plugin/release/release.hpp"

namespace banyan::slurm {

/// Views of the text that was split; either may be empty.
struct admin_text {
    std::string_view line;    ///< ours
    std::string_view theirs;  ///< without the mark
};
admin_text split_admin_comment(std::string_view text);

/// Replaces our line, an empty one with nothing. What an administrator wrote stays.
void set_admin_line(job_record_t& job, std::string_view line);

/// An administrator's change of the comment gets our line before it, in place of one that he has typed.
void keep_admin_line(job_desc_msg_t& change, const job_record_t& job);

}  // namespace banyan::slurm
