// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the plugins say in slurmctld's log, and how often. Called under slurmctld's job lock only.
#pragma once

#include <string>

namespace banyan::slurm {

void log_info(const std::string& text);
void log_error(const std::string& text);

/// Says `text` once per `topic` until the text changes: a state, not an event. An empty text ends the state.
void log_state(const std::string& topic, const std::string& text);

/// Says `text` once per job.
void log_job_once(std::uint32_t job_id, const std::string& text);

/// Makes guarded() report through Slurm's log.
void install_guard_sink();

}  // namespace banyan::slurm
