// SPDX-License-Identifier: BSD-3-Clause
//
// The agent's other logs: the fabric manager's, and files to which jobs write NCCL's warnings. Each is
// followed by name; a file that is no file, or that everybody may write, is not read. What a user wrote is
// bounded in number, and speaks of nothing but a job.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "common/log.hpp"
#include "fault/config.hpp"
#include "fault/sources/file_follower.hpp"
#include "fault/sources/kernel_fault.hpp"

namespace banyan::fault {

class program_watch {
  public:
    /// `job`: that the line accuses, as far as that can be believed; 0 for none.
    using sink = std::function<void(kernel_fault fault, const log_line& line, std::uint32_t job)>;

    program_watch(asio::io_context& io, const config& settings, sink to);
    void start();

    // For tests: one line of each format. `owner`: whose file it is.
    void fabric_manager(const log_line& line);
    void nccl(const log_line& line, uid_t owner);

  private:
    task<void> follow(log_source what);
    bool may_pass(std::int64_t now_ms);

    // Of lines that users write as fast as they like, so many events a minute are enough.
    static constexpr std::uint32_t most_a_minute = 32;
    asio::io_context& io_;
    const config& config_;
    sink sink_;
    std::int64_t minute_ms_ = 0;
    std::uint32_t passed_ = 0;
    log_limiter quiet_;
};

}  // namespace banyan::fault
