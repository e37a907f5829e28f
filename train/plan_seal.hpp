// SPDX-License-Identifier: BSD-3-Clause
//
// How a plan travels through a job's SPANK environment, which its user can write too, and how root knows that
// it is slurmctld's: it is the payload of a munge credential, so munge vouches for the uid that wrote it, and
// it names its job. The select plugin writes it, the SPANK plugin and banyan-topo read it. Blocks while
// munged answers, well under a millisecond and the time to compress.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "common/result.hpp"
#include "train/plan.hpp"

namespace banyan::train {

/// One variable's value. The kernel takes no string of more than 128 KiB into an environment, and Slurm adds
/// the name.
constexpr std::size_t max_plan_piece = 64u << 10;
/// All pieces. With max_environment_bytes well below the 2 MiB that execve takes in all.
constexpr std::size_t max_sealed_plan = 512u << 10;
constexpr std::size_t max_plan_pieces = max_sealed_plan / max_plan_piece;

/// Name of piece `i`: "BANYAN_PLAN", "BANYAN_PLAN_2", ...
std::string plan_variable(std::size_t i);
/// Whether an entry of a SPANK environment, "NAME=value" or not, is a piece of a plan or could be taken for
/// one by any reader: whatever its case, and however often SPANK_ stands before the name.
bool names_plan(std::string_view entry);

/// `plan` as credential of this process' user. exhausted: it is larger than max_sealed_plan.
result<std::string> seal_plan(const std::string& munge_socket, const plan& p);
/// The credential cut into pieces, at most max_plan_pieces.
std::vector<std::string> pieces_of(const std::string& sealed);
/// True for what seal_plan may have written; says nothing of the writer.
bool looks_sealed(std::string_view text);

struct opened_plan {
    plan what;
    uid_t writer = 0;  ///< as munge vouches
};
/// What seal_plan wrote, checked as parse_plan does. The caller has to look at the writer and at the job.
result<opened_plan> open_plan(const std::string& munge_socket, const std::string& sealed);

}  // namespace banyan::train
