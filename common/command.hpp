// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a program without a shell and gives its standard output. Blocking: from a daemon call on a pool.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/child.hpp"
#include "common/result.hpp"

namespace banyan {

/// What a program printed, and how it came to its end.
struct command_output {
    enum class stop {
        ended,     ///< by itself, well or not
        late,      ///< at the time-out: it got SIGTERM, and SIGKILL a second later
        too_much,  ///< at the limit of its output, in the same way
    };
    std::string text;       ///< standard output
    std::string last_line;  ///< of its standard error, without blanks around it
    stop stopped = stop::ended;
    child_end end;

    bool good() const { return stopped == stop::ended && end.code == 0; }
};

struct command_limits {
    std::chrono::milliseconds timeout;
    std::size_t max_bytes = 256u << 20;  ///< of standard output
    bool errors_are_ours = false;        ///< its standard error goes to ours, and last_line stays empty
};

/// Fails only when the program cannot be started (errc::not_found: there is none of that name). Its standard
/// input is empty.
result<command_output> capture(const std::vector<std::string>& argv, const command_limits& limits);

/// Its standard output. Fails when the program is not found, exits other than 0, prints more than `max_bytes`
/// or runs past `timeout`.
result<std::string> run_command(const std::vector<std::string>& argv, std::chrono::milliseconds timeout,
                                std::size_t max_bytes = 256u << 20);

}  // namespace banyan
