// SPDX-License-Identifier: BSD-3-Clause
//
// A look at the node's hardware in a process of its own, since sysfs and libraries hang with the card that
// they ask, and may crash with it. Of each kind of look one process at a time: one that does not end when it
// is killed, since the kernel holds it, is waited for by no one, and until it has ended there is no other.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "common/child.hpp"
#include "common/result.hpp"
#include "common/wire_async.hpp"

namespace banyan::fault {

class look {
  public:
    /// `words`: the program and its arguments; it prints one JSON object, with "error" where it could not
    /// look.
    look(asio::io_context& io, std::vector<std::string> words, std::chrono::milliseconds timeout);
    ~look();
    look(const look&) = delete;
    look& operator=(const look&) = delete;

    /// What it printed; one at a time. unavailable: it was late, or an earlier one has not ended yet.
    task<result<nlohmann::json>> ask();

  private:
    task<result<std::string>> read_all(int from, std::chrono::steady_clock::time_point until);
    task<bool> ends_by(std::chrono::steady_clock::time_point until);

    static constexpr std::size_t longest_answer = 4u << 20;
    asio::io_context& io_;
    std::vector<std::string> words_;
    std::chrono::milliseconds timeout_;
    std::unique_ptr<child> running_;
    std::chrono::steady_clock::time_point begun_{};
};

}  // namespace banyan::fault
