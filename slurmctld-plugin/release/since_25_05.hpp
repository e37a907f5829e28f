// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the releases from 25.05 on have in common: slurmctld alone loads a select plugin, the configured one,
// and asks it about no step.
#pragma once

#include "slurmctld-plugin/release/since_24_11.hpp"

namespace banyan::slurm {

/// Slurm knows select/cons_tres by its number in several places, and counts what it finds there.
constexpr std::uint32_t our_id = SELECT_PLUGIN_CONS_TRES;

inline bool loads_one_select_plugin(std::string_view) { return true; }

/// slurmctld asks nobody when another step is asked for, so nobody would end them.
inline void note_broken_steps(const job_record_t&, const node_record_t&) {}

}  // namespace banyan::slurm
