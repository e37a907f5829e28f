// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the releases up to 25.11 have in common.
#pragma once

#include <cstdint>
#include <vector>

namespace banyan::slurm {

inline void order_nodes(job_record_t&, const std::vector<std::uint32_t>&) {}

}  // namespace banyan::slurm
