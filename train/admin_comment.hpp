// SPDX-License-Identifier: BSD-3-Clause
//
// The one line that people read in a job's AdminComment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <banyan/topo/placement.hpp>

#include "common/result.hpp"

namespace banyan::train {

/// What a job would have gained by a later start.
struct better_later {
    std::uint32_t minutes = 0;
    std::uint32_t per_cent = 0;  ///< less weighted bytes (placement_cost)
};

/// "banyan: tp=2,pp=2,dp=4 nodes=8 ranks=16 spares=1(n09) groups=g1:8 straddling-pp=0/4". The last word is
/// straddling-tp where nodes share tensor parallel groups and no pipeline, and absent where none shares
/// either; " tasks=8" follows the ranks of a job that starts launchers, " model=..." when the request has
/// one, and " waiting=60m:-45%" when `later` is given.
std::string admin_comment(const topo::request& r, const topo::spread& s,
                          const std::vector<std::string>& spare_names,
                          const std::optional<better_later>& later = {});

/// The line with other spares.
std::string with_spares(std::string_view line, const std::vector<std::string>& spares);

struct admin_summary {
    std::string shape;
    std::uint32_t nodes = 0;  ///< that run ranks
    std::uint32_t ranks = 0;
    std::uint32_t tasks = 0;  ///< of a training step: the ranks, or a launcher on each node
    std::vector<std::string> spares;
    std::optional<topo::model_size> model;
    std::optional<better_later> later;
};
/// Reads the line back. not_found when the text is not one of ours.
result<admin_summary> parse_admin_comment(std::string_view text);

}  // namespace banyan::train
