// SPDX-License-Identifier: BSD-3-Clause
//
// The one line that people read in a job's AdminComment. It is written, and never read back to decide by:
// operators may edit it. What programs go by is the plan, and its summary.
#pragma once

#include <string>
#include <string_view>

#include <banyan/topo/placement.hpp>

#include "train/plan.hpp"

namespace banyan::train {

/// For plan::spread: "groups=g1:8 straddling-pp=0/4". The last word is straddling-tp where nodes share tensor
/// parallel groups and no pipeline, and absent where none shares either. " unlike=n[07-08]" follows where
/// nodes are of another kind than most, and " fabric=2026-11-26T10:00Z", when the fabric was looked at.
std::string spread_in_words(const topo::request& r, const topo::spread& s);

/// "banyan: tp=2,pp=2,dp=4 nodes=8 ranks=16 spares=1(n09) groups=g1:8 straddling-pp=0/4". " tasks=8" follows
/// the ranks of a job that starts launchers; " model=...", " waiting=60m:-45%" and, of one that goes on with
/// fewer groups, " of=" and the shape that it asked for end the line where the plan has them.
std::string admin_comment(const plan& p);

/// Whether a text begins as such a line does, so that the line can be replaced and the rest kept.
bool is_admin_comment(std::string_view text);

}  // namespace banyan::train
