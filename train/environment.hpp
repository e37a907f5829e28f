// SPDX-License-Identifier: BSD-3-Clause
//
// How large the SPANK environment of a job may be. Slurm takes any size at submission and hands it to execve
// of the prolog on every node: past the kernel's limits that fails, and the nodes are drained.
#pragma once

#include <cstdint>

#include "common/result.hpp"

namespace banyan::train {

/// One entry, name and value. The kernel's limit is 128 KiB, and Slurm puts SPANK_ in front.
constexpr std::size_t max_environment_entry = 32u << 10;
/// All entries. The kernel's limit is 2 MiB with the usual stack limit, a plan's pieces included.
constexpr std::size_t max_environment_bytes = 256u << 10;
/// Slurm's work on the entries grows with the square of their number.
constexpr std::size_t max_environment_entries = 1024;

/// An error says which limit a submitted environment passes. Entries may be null.
result<void> check_environment(const char* const* entries, std::uint32_t count);

}  // namespace banyan::train
