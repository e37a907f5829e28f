// SPDX-License-Identifier: BSD-3-Clause
//
// One function per Slurm context and hook; dispatch.cpp decides which runs. All return SLURM_SUCCESS or an
// error that the hook may report without harm: an error from the wrong SPANK hook drains the node, so most
// never fail.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "spank/spank_slurm.hpp"
#include "spank/train_options.hpp"

namespace banyan::spank {

/// Arguments of the line in plugstack.conf. Unknown keys are an error that the log names once.
struct settings {
    std::string config;  ///< banyan.conf; empty = $BANYAN_CONF or /etc/banyan/banyan.conf
    std::string ckptd = "/usr/libexec/banyan/banyan-ckptd";  ///< the checkpoint daemon's program
    std::string ckptd_log;  ///< its log file, %n = node; empty = its standard error is dropped
};
settings parse_settings(int ac, char** av);

// options.cpp
/// Registers the --train options; every context that may see them must call it.
int register_options(spank_t sp);
/// In srun and sbatch: options and their environment twins are made one, and are handed to the job.
int settle_options(spank_t sp);
/// The text of an option in this process: command line first, twin second.
std::optional<std::string> option_text(train::which option);
/// True when the option stood on this very command line, not in what sbatch left in the environment.
bool given_here(train::which option);

// local.cpp: srun
int announce_step(spank_t sp);

// slurmd.cpp: prolog and epilog of the job on every node, as root
int open_session(spank_t sp, const settings& s);
int detach_session(spank_t sp, const settings& s);

// stepd.cpp: the step on every node
int open_step(spank_t sp, const settings& s);
int set_task_environment(spank_t sp, const settings& s);

// launch.cpp
struct daemon_paths {
    std::string config;
    std::string socket;
    std::string node;
};
/// The paths of this node's checkpoint daemon, as banyan.conf names them.
result<daemon_paths> find_daemon(const settings& s, const std::string& node);
/// Returns when the daemon answers on its socket; starts it outside the job when it does not run. `address`:
/// what it binds.
result<void> ensure_daemon(const settings& s, const daemon_paths& paths, const std::string& address);

/// A variable of the job's environment (stepd) or of this process (elsewhere); empty when it is not set or
/// over 256 KiB.
std::string job_variable(spank_t sp, const char* name);

}  // namespace banyan::spank
