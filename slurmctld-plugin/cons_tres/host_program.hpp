// SPDX-License-Identifier: GPL-2.0-or-later
//
// The program of Slurm, or of somebody else who uses libslurm, that has loaded the select plugin, and the
// number under which the plugin speaks there.
//
// Slurm writes the number of a select plugin before whatever that plugin packs: in the saved state of every
// job, in credentials' company on the wire, in job and node information. A reader that has no plugin of that
// number takes the whole message for damaged, so with a number of our own nothing could be switched to or
// from banyan while jobs run. What we pack is what select/cons_tres packs; so we speak under its number. But
// up to 24.11 most programs load every select plugin that they find, and refuse to start where two have the
// same one: there ours is our own until that look is over.
#pragma once

#include <string_view>

#include "slurmctld-plugin/release/release.hpp"

extern "C" std::uint32_t plugin_id;

namespace banyan::slurm {

/// PluginDir, folders between colons; empty when the program has no configuration of Slurm.
std::string_view plugin_folders();

/// SelectType names us.
bool selected();

/// For the plugin's init: the number with which Slurm may find us.
void begin_numbering();

/// For each function of the plugin: Slurm has looked, so the number is that of select/cons_tres from now on.
/// Not in slurmctld, where a saved state under our own number may still be read: there it is
/// `jobs_are_restored` alone that says so.
void was_called();
void jobs_are_restored();

}  // namespace banyan::slurm
