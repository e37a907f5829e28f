// SPDX-License-Identifier: BSD-3-Clause
//
// The --train-* options as text and as values. No Slurm header here: the SPANK plugin, the submit filter and
// the select plugin all read the same text through these functions, so that a job is refused everywhere for
// the same reason or nowhere.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <banyan/topo/placement.hpp>

#include "common/result.hpp"

namespace banyan::train {

constexpr std::size_t max_option_text = 4096;
constexpr std::uint32_t max_spares = 1024;
constexpr std::uint32_t max_wait_minutes = 7 * 24 * 60;
/// Of the state of one rank: more than any node has memory.
constexpr std::uint64_t max_state_bytes = std::uint64_t{16} << 40;

/// What --train-ckpt=dir=/path,every=1,flush=50 says.
struct checkpoint_options {
    std::string directory;        ///< absolute; empty = memory only
    std::uint32_t every = 1;      ///< steps between saves to memory
    std::uint32_t flush = 0;      ///< steps between flushes to storage; 0 = never
    std::uint32_t milestone = 0;  ///< the first step in storage from each multiple on stays; 0 = none does
    /// State of one rank, so that its memory is ready before it starts; 0 = unknown.
    std::uint64_t bytes = 0;
};

/// Everything a job asked for. Absent options have no value.
struct options {
    std::optional<topo::shape> parallel;
    std::uint32_t spares = 0;
    std::optional<topo::model_size> model;
    std::uint32_t wait_minutes = 0;       ///< that the job may start later for a better place
    std::optional<std::uint32_t> min_dp;  ///< data parallel groups with which it may go on
    std::optional<checkpoint_options> checkpoint;
};

result<std::uint32_t> parse_spares(std::string_view text);
result<std::uint32_t> parse_wait(std::string_view text);
result<std::uint32_t> parse_min_dp(std::string_view text);
result<checkpoint_options> parse_checkpoint(std::string_view text);

/// One option as Slurm knows it. `env` is the name under which Slurm itself carries the value (job's SPANK
/// environment), `variable` the one that a user may set instead of the option; an option on the command line
/// wins.
struct option_name {
    const char* option;
    const char* argument;
    const char* help;
    const char* env;
    const char* variable;
};
/// Of srun alone, without an argument: this step is the training. And the variable in which Slurm carries it.
constexpr const char* train_option = "train";
constexpr const char* train_carrier = "SLURM_SPANK__SLURM_SPANK_OPTION_banyan_train";
/// By which srun says in its job's SPANK environment that it starts the training itself, right after the
/// allocation: slurmctld then chooses the step's nodes.
constexpr const char* step_mark = "BANYAN_STEP";
constexpr const char* step_mark_value = "srun";

enum which : std::size_t { parallel, spares, checkpoint, model, wait, min_dp, option_count };
extern const std::array<option_name, option_count> option_names;

/// Checks one option's text; what srun and sbatch print when it is wrong.
result<void> check(which option, std::string_view text);

/// Reads the options out of "NAME=value" strings (a job's SPANK environment). Others are ignored.
class env_reader {
  public:
    /// Takes `entry` when it is one of ours.
    void take(std::string_view entry);
    /// Parses what was taken. No option at all is fine and gives an empty value.
    result<options> finish() const;

  private:
    std::array<std::optional<std::string>, option_count> text_;
};

}  // namespace banyan::train
