// SPDX-License-Identifier: BSD-3-Clause
//
// Slurm's public headers for the SPANK plugin, and what differs between releases, in this one file. Tried
// live: 22.05.8.
#pragma once

// spank.h declares the hooks outside its own extern "C".
extern "C" {
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
}

static_assert(SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(22, 5, 0),
              "older releases lack slurm_step_id_t's component");
