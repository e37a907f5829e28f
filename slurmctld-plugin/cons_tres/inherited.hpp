// SPDX-License-Identifier: GPL-2.0-or-later
//
// select/cons_tres, which answers whatever banyan does not. It is opened by a handle of its own and stands in
// nobody's scope, so neither of the two ever binds to a symbol of the other, whichever Slurm loads first, and
// a site that has our file but another SelectType runs as without it. Slurm up to 24.11 loads
// select/cons_tres itself as well: then both are one image, which is begun and ended twice. Its init sets
// flags from slurm.conf and its fini frees what it then forgets, so either may come again.
#pragma once

#include "slurmctld-plugin/cons_tres/select_table.hpp"

namespace banyan::slurm {

/// For the plugin's init: opens select/cons_tres where SelectType names us, and else nothing. SLURM_ERROR,
/// and the reason in the log, when it cannot be used; Slurm's programs then end.
int start_inherited_plugin();
void end_inherited_plugin();

/// Null when it cannot be used, which the log has once. Opened at the first call where start_inherited_plugin
/// did not: a program that reads what was packed under our number.
const select_functions* inherited_plugin();

}  // namespace banyan::slurm
