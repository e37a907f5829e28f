// SPDX-License-Identifier: BSD-3-Clause
//
// The line in a job's AdminComment read back, for `banyan-topo explain`, which shows a job to people and
// knows of it what scontrol prints. Operators may edit that text, so no program decides by it: scripts/lint
// keeps this header out of all others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "train/plan.hpp"

namespace banyan::train {

struct shown_plan {
    std::string shape;
    std::uint32_t nodes = 0;  ///< that run ranks
    std::vector<std::string> spares;
    std::optional<topo::model_size> model;
    std::optional<better_later> later;
};
/// not_found when the text is not one of ours.
result<shown_plan> read_admin_comment(std::string_view text);

}  // namespace banyan::train
