// SPDX-License-Identifier: BSD-3-Clause
//
// What check_plugins has in two files: the objects, and plugstack.conf.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "doctor/site.hpp"

namespace banyan::doctor {

constexpr std::uint32_t micro = 0xffffff, minor = 0xffff00;

/// The release of Slurm that loads plugins here: this host's own, which need not be slurmctld's.
std::optional<std::uint32_t> release_here(const site& s);

/// Whether `file` is a plugin for the release that runs; `mask`: so much of both has to be the same.
finding judge_object(const std::filesystem::path& file, std::optional<std::uint32_t> runs, std::uint32_t mask,
                     const char* why);
/// The same of the one of that name in PluginDir.
finding judge_plugin(const site& s, const std::string& name, std::uint32_t mask, const char* why);

/// The SPANK plugin, and the line that loads it.
void judge_spank(const site& s, findings& out);

}  // namespace banyan::doctor
