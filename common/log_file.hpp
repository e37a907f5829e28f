// SPDX-License-Identifier: BSD-3-Clause
//
// A daemon's log as a file: what is needed of it besides writing (common/log.hpp).
#pragma once

#include <string>

#include "common/result.hpp"

namespace banyan {

/// Opens the file of setup_log() anew under its name: after a rename the log goes on in a new file. When that
/// cannot be done the old one goes on, and says so. Nothing without a log file. From any thread.
void reopen_log();

/// The FILE of "--log FILE" or "--log=FILE" on a command line that is not understood: why not belongs into
/// the log, too. Empty without one.
std::string log_option(int argc, const char* const* argv);

/// Why `program` cannot start: to standard error, and to the log of setup_log() when that is a file. Before
/// setup_log(), give it `file`, the log's name or "".
void say_fatal(const std::string& program, const std::string& file, const std::string& why);

}  // namespace banyan
