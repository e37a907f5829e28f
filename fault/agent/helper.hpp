// SPDX-License-Identifier: BSD-3-Clause
//
// A process that looks at the hardware for the agent: sysfs and libraries hang with the card that they ask,
// and may crash with it. One that does not end when it is killed, since the kernel holds it, is waited for by
// no one. Nothing here blocks.
#pragma once

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "common/child.hpp"
#include "common/clock.hpp"
#include "common/result.hpp"
#include "common/wire_async.hpp"

namespace banyan::fault {

class helper {
  public:
    using clock = banyan::clock;

    /// Its standard output comes to us, its errors go to ours.
    static result<std::unique_ptr<helper>> start(asio::io_context& io, const std::vector<std::string>& words);
    /// Kills it.
    ~helper();
    helper(const helper&) = delete;
    helper& operator=(const helper&) = delete;

    /// What it prints next, without the line's end; at its end nothing more comes: not_found. unavailable:
    /// nothing came until then.
    task<result<std::string>> line(clock::time_point until);
    /// All that it prints, until it closes its output.
    task<result<std::string>> all(clock::time_point until);
    void kill() const { process_->send(SIGKILL); }
    /// Whether it has ended by then; at once where it has.
    task<bool> ends_by(clock::time_point until);
    bool ended() const { return process_->ends_by(clock::now()); }
    /// How it ended; once, and only when it has.
    child_end end() { return process_->wait(); }

  private:
    helper(asio::io_context& io, child&& process, int from);
    task<result<void>> read_some(clock::time_point until);

    static constexpr std::size_t most_kept = 4u << 20;
    asio::io_context& io_;
    std::unique_ptr<child> process_;
    asio::posix::stream_descriptor from_;
    std::string text_;
};

}  // namespace banyan::fault
