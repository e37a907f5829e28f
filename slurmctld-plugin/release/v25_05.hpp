// SPDX-License-Identifier: GPL-2.0-or-later
//
// Slurm 25.05. Built, not run.
#pragma once

#include "slurmctld-plugin/release/since_25_05.hpp"
#include "slurmctld-plugin/release/until_25_05.hpp"

#define BANYAN_SELECT_TABLE(OURS, THEIRS) BANYAN_ROWS_ALWAYS(OURS, THEIRS)
