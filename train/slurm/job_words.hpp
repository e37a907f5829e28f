// SPDX-License-Identifier: BSD-3-Clause
//
// A job's state and end as squeue and sacct print them: libslurm does not export its own names.
#pragma once

#include <cstdint>
#include <string>

namespace banyan::train {

/// "RUNNING"; `state` with its flags.
std::string state_name(std::uint32_t state);

/// "FAILED, exit code 137", of a job that is over; `status` as wait(2) has it.
std::string end_in_words(std::uint32_t state, std::uint32_t status);

}  // namespace banyan::train
