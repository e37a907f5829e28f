// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/job_need.hpp"

#include "train/admin_comment.hpp"

namespace banyan::fault {

std::optional<std::uint32_t> nodes_needed(std::string_view admin_comment) {
    const auto summary = train::parse_admin_comment(admin_comment);
    if (!summary || summary->nodes == 0) return {};
    return summary->nodes;
}

}  // namespace banyan::fault
