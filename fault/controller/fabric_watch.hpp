// SPDX-License-Identifier: BSD-3-Clause
//
// Watches the logs of the subnet manager and of UFM; after a change it looks at the fabric itself and says
// what is missing now. The subnet manager's log alone names neither link nor port, but NVIDIA's form of it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "common/log.hpp"
#include "common/timer.hpp"
#include "fault/config.hpp"
#include "fault/fabric/fabric_fault.hpp"
#include "fault/sources/file_follower.hpp"
#include "fault/sources/opensm_log.hpp"

namespace banyan::fault {

/// What a look at the fabric found.
struct fabric_news {
    std::vector<fabric_fault> missing;    ///< all that is missing now
    std::vector<fabric_fault> passing;    ///< links whose port was told to go down, and that are there
    std::vector<evidence_line> evidence;  ///< the lines that made us look
    std::int64_t line_ms = 0;             ///< when the first of them was written; 0 without any
    std::shared_ptr<const known_fabric> seen;
};

class fabric_watch {
  public:
    struct reports {
        std::function<void(fabric_news news)> looked;
        /// UFM told of what no look can show: errors of a port, a cable that is hot.
        std::function<void(const ufm_event& told, std::int64_t line_ms)> told;
        /// The subnet manager's log told of itself: it ends, or its state changed.
        std::function<void(const opensm_event& line)> manager;
        /// Whether Slurm restarts the host, or has it without power. Called on the pool's threads; may block.
        std::function<result<bool>(const std::string& host)> is_planned{};
    };

    fabric_watch(asio::io_context& io, asio::thread_pool& pool, const config& settings, reports to);
    void start();
    /// Whether there is anything to watch.
    bool is_on() const { return !config_.opensm_log.empty() || !config_.ufm_log.empty(); }
    /// Looks now, whatever the logs say. False when the fabric could not be seen.
    task<bool> look_now();
    /// Somebody says that it is gone for good, as far as it is gone.
    void give_up(object gone);

  private:
    task<void> follow(std::string path, const char* whose, line_sink sink);
    task<void> look_when_told();
    task<void> look();
    void after_opensm_line(const log_line& line);
    void after_ufm_line(const log_line& line);
    /// The fabric changed, as `text` tells.
    void note(std::int64_t line_ms, const char* source, const std::string& text);
    void name(named_port port);
    /// What Slurm means to be gone is a notice.
    void ask_for_plans(std::vector<fabric_fault>& missing) const;

    static constexpr std::size_t max_lines = 32, max_named = 256, max_given_up = 4096;
    static constexpr std::chrono::minutes plans_again{1};
    asio::io_context& io_;
    asio::thread_pool& pool_;
    config config_;
    reports report_;
    opensm_parser parser_;
    fabric_memory memory_;  // touched by one task at a time: look()
    timer told_, looked_;
    bool changed_ = false, settled_ = false, saw_ = false;
    bool planned_ = false;  // what Slurm means to be gone was missing at the last look
    std::uint64_t looks_ = 0;
    std::int64_t line_ms_ = 0;
    std::vector<evidence_line> lines_;
    std::vector<named_port> named_;  // ports that were told to go down
    std::vector<object> given_up_;   // the next look takes them from what counts as the fabric
    log_limiter quiet_;
};

}  // namespace banyan::fault
