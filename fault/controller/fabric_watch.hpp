// SPDX-License-Identifier: BSD-3-Clause
//
// Watches the subnet manager's log; after a change it looks at the fabric itself and says what is missing
// now. The log alone names neither link nor port.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include "common/log.hpp"
#include "fault/config.hpp"
#include "fault/fabric/fabric_fault.hpp"
#include "fault/sources/file_follower.hpp"
#include "fault/sources/opensm_log.hpp"

namespace banyan::fault {

class fabric_watch {
  public:
    /// All that is missing now; `evidence` = the lines that made us look; `line_ms` = when the first of them
    /// was written.
    using report = std::function<void(std::vector<fabric_fault> missing, std::vector<evidence_line> evidence,
                                      std::int64_t line_ms)>;

    fabric_watch(asio::io_context& io, asio::thread_pool& pool, const config& settings, report to);
    void start();

  private:
    task<void> follow();
    task<void> look_when_told();
    task<void> look();
    void after_line(const log_line& line);

    static constexpr std::size_t max_lines = 32;
    asio::io_context& io_;
    asio::thread_pool& pool_;
    config config_;
    report report_;
    std::unique_ptr<file_follower> log_;
    opensm_parser parser_;
    fabric_memory memory_;  // touched by one task at a time: look()
    asio::steady_timer told_;
    bool changed_ = false, settled_ = false;
    std::int64_t line_ms_ = 0;
    std::vector<evidence_line> lines_;
    log_limiter quiet_;
};

}  // namespace banyan::fault
