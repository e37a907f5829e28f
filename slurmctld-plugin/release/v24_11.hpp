// SPDX-License-Identifier: GPL-2.0-or-later
//
// Slurm 24.11 (Debian 13). Tried live: 24.11.5.
#pragma once

#include "slurmctld-plugin/release/since_24_11.hpp"

#define BANYAN_SELECT_TABLE(OURS, THEIRS) \
    BANYAN_ROWS_ALWAYS(OURS, THEIRS)      \
    BANYAN_ROWS_OF_STEPS(OURS, THEIRS)

namespace banyan::slurm {

/// Our number among the select plugins (host_program.hpp): slurmctld loads all of them, and each needs its
/// own.
constexpr std::uint32_t our_id = 180;

/// Programs that load the configured select plugin and no other: select_g_init(1). slurmstepd loads all.
inline bool loads_one_select_plugin(std::string_view program) { return program == "slurmd"; }

}  // namespace banyan::slurm

#include "slurmctld-plugin/release/step_hooks.hpp"
#include "slurmctld-plugin/release/until_25_05.hpp"
