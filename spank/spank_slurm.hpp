// SPDX-License-Identifier: BSD-3-Clause
//
// Slurm's public headers for the SPANK plugin.
#pragma once

#include "train/slurm/libslurm.hpp"

// spank.h declares the hooks outside its own extern "C".
extern "C" {
#include <slurm/spank.h>
}
