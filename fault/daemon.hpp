// SPDX-License-Identifier: BSD-3-Clause
//
// Runs one role until SIGTERM or SIGINT; the exit code of the program.
#pragma once

#include "fault/config.hpp"

namespace banyan::fault {

int run_agent(config settings);
int run_controller(config settings, policy rules);

}  // namespace banyan::fault
