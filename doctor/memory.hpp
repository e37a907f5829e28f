// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a node has room for its jobs and for their checkpoints at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "doctor/finding.hpp"

namespace banyan::doctor {

/// All in bytes.
struct memory_of_node {
    std::uint64_t total = 0;           ///< MemTotal of the kernel
    std::uint64_t for_slurm = 0;       ///< RealMemory
    std::uint64_t kept_from_jobs = 0;  ///< MemSpecLimit
    std::uint64_t ckptd_limit = 0;     ///< [ckptd] memory_limit
    bool jobs_are_limited = false;     ///< SelectTypeParameters counts memory (CR_…_Memory)
};

finding judge_memory(const memory_of_node& m);
/// Limits of [ckptd] under which no training fits; nothing where they are not so small. `of_job` 0: none of
/// its own.
std::optional<finding> judge_limits(std::uint64_t limit, std::uint64_t of_job);

/// MemTotal of /proc/meminfo, in bytes.
std::optional<std::uint64_t> memory_total(std::string_view meminfo);

}  // namespace banyan::doctor
