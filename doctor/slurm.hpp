// SPDX-License-Identifier: BSD-3-Clause
//
// The site's Slurm as its own commands tell it. Knows no Slurm header, so that one doctor serves every
// release.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/plugstack_arguments.hpp"
#include "common/result.hpp"

namespace banyan::doctor {

/// `scontrol show config` as "key -> value". Keys as Slurm prints them (SelectType, PluginDir,
/// SLURM_VERSION).
using slurm_config = std::map<std::string, std::string, std::less<>>;

struct slurm_node {
    std::string name;
    std::string address;               ///< NodeAddr
    std::string host;                  ///< NodeHostName
    std::uint64_t real_memory = 0;     ///< MiB
    std::uint64_t mem_spec_limit = 0;  ///< MiB
    std::string state;                 ///< as Slurm prints it, with flags; empty = not known

    /// Whether it is worth calling: Slurm does not say itself that nobody is there.
    bool expected_up() const;
};

struct slurm_file;

/// What Slurm says: slurmctld, or this host's slurm.conf where slurmctld does not answer. Each is an error of
/// its own where neither could be had.
struct slurm_view {
    result<slurm_config> config;
    result<std::vector<slurm_node>> nodes;
    std::optional<error> silence{};            ///< why it is not slurmctld that says it
    std::optional<std::uint32_t> installed{};  ///< release of this host's Slurm; nothing = could not be asked
    std::shared_ptr<slurm_file> file{};        ///< this host's slurm.conf; none where there is none
    std::optional<error> file_error{};         ///< why it could not be read
    std::string unset_conf{};                  ///< that of Slurm's daemons, where our SLURM_CONF was not set
};

/// Runs scontrol, which has to be on the PATH.
slurm_view ask_slurm();

slurm_config parse_config(std::string_view text);
/// Of `scontrol -o show node`, one node a line.
std::vector<slurm_node> parse_nodes(std::string_view text);

/// Those of whom Slurm does not know already that nobody is there.
std::vector<slurm_node> expected(const std::vector<slurm_node>& nodes);
/// For messages: a host list, of very many the first and how many more.
std::string some(const std::vector<std::string>& names);

std::string lower_case(std::string_view text);
/// The value, or empty.
std::string value_of(const slurm_config& config, std::string_view key);
/// Whether `key` of the configuration is a comma list with `word` in it, however it is capitalized.
bool has_word(const slurm_config& config, std::string_view key, std::string_view word);
/// slurm.conf has a SelectType of Slurm's own and no job_submit/banyan: Slurm chooses the nodes, and banyan
/// orders the ranks on them. With one of the two ours the other is missing. False where it is not known.
bool is_without_select(const slurm_config& config);
/// The hosts of slurmctld: "SlurmctldHost[0] = ctl1(10.0.0.1)" gives "ctl1".
std::vector<std::string> controllers(const slurm_config& config);

/// "22.05.8" as SLURM_VERSION_NUMBER, 0x160508; nothing where it is no version.
std::optional<std::uint32_t> parse_version(std::string_view text);
std::string version_text(std::uint32_t number);

/// The first file of this name in the folders of PluginDir.
std::optional<std::filesystem::path> find_plugin(const slurm_config& config, const std::string& name);
/// `plugin_version` of a Slurm plugin, read from the file without loading it.
result<std::uint32_t> plugin_version(const std::filesystem::path& file);

/// The line of plugstack.conf, and of the files that it includes, that loads our SPANK plugin.
struct plugstack_line {
    std::filesystem::path file;  ///< where it stands
    bool required = false;
    std::string plugin;
    plugstack_arguments arguments;
};
result<std::optional<plugstack_line>> find_in_plugstack(const std::filesystem::path& file);
/// The file and all that it includes, with the folders in which a pattern is looked for: what a user's srun
/// has to read.
std::vector<std::filesystem::path> parts_of_plugstack(const std::filesystem::path& file);

}  // namespace banyan::doctor
