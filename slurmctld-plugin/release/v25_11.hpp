// SPDX-License-Identifier: GPL-2.0-or-later
//
// Slurm 25.11. Tried live: 25.11.7.
#pragma once

#include "slurmctld-plugin/release/since_25_11.hpp"
#include "slurmctld-plugin/release/until_25_11.hpp"

#define BANYAN_SELECT_TABLE(OURS, THEIRS) BANYAN_ROWS_ALWAYS(OURS, THEIRS)
