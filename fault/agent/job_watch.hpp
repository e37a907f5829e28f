// SPDX-License-Identifier: BSD-3-Clause
//
// What befell jobs on this node, as slurmstepd and the checkpoint daemon tell it: datagrams of
// common/job_news on the agent's socket. Only root's are taken, by the kernel's word on who sent each. What a
// user can bring about as often as he likes (a task that fails) is bounded for each job and kind, and counted
// beyond that.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/types.h>

#include "common/job_news.hpp"
#include "common/log.hpp"
#include "common/wire_async.hpp"
#include "fault/config.hpp"
#include "fault/sources/kernel_fault.hpp"

namespace banyan::fault {

class job_watch {
  public:
    using sink = std::function<void(kernel_fault fault, const std::string& text, std::uint32_t job)>;

    job_watch(asio::io_context& io, const config& settings, sink to);
    ~job_watch();
    /// Listens; where that is impossible, says so and tries again.
    void start();

    // For tests: one datagram of a sender.
    void take(std::string_view datagram, uid_t sender, std::int64_t now_ms);

  private:
    struct tally {
        std::int64_t minute_ms = 0;
        std::uint32_t passed = 0;
        std::uint64_t held = 0;
    };

    result<void> listen();
    task<void> follow();
    task<result<void>> read_all();
    bool may_pass(const job_news& news, std::int64_t now_ms, std::uint64_t& held);
    void complain(const std::string& about, const std::string& text);

    static constexpr std::uint32_t most_a_minute = 8;  ///< of one job and kind
    static constexpr std::size_t most_tallies = 1024;
    asio::io_context& io_;
    const config& config_;
    sink sink_;
    asio::posix::stream_descriptor socket_;
    dev_t own_device_ = 0;
    ino_t own_inode_ = 0;
    std::map<std::pair<std::uint32_t, job_news::kind>, tally> tallies_;
    log_limiter quiet_;
};

/// A job's words for it: "step 17.3, rank 5: signal 7 (SIGBUS)".
std::string words_of(const job_news& news);
kernel_fault fault_of(const job_news& news);

}  // namespace banyan::fault
