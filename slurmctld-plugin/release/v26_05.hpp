// SPDX-License-Identifier: GPL-2.0-or-later
//
// Slurm 26.05. Tried live: 26.05.3.
#pragma once

#include "slurmctld-plugin/release/since_25_11.hpp"

// clang-format off
#define BANYAN_SELECT_TABLE(OURS, THEIRS) \
    BANYAN_ROWS_ALWAYS(OURS, THEIRS) \
    THEIRS(job_mem_reduce, job_mem_reduce, void, (job_record_t* job), (job))
// clang-format on
