// SPDX-License-Identifier: BSD-3-Clause
//
// A look at the node's hardware, each time in a process of its own. One process at a time: while one hangs in
// the kernel there is no other.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "fault/agent/helper.hpp"

namespace banyan::fault {

class look {
  public:
    /// `words`: the program and its arguments; it prints one JSON object, with "error" where it could not
    /// look.
    look(asio::io_context& io, std::vector<std::string> words, std::chrono::milliseconds timeout)
        : io_(io), words_(std::move(words)), timeout_(timeout) {}

    /// What it printed; one at a time. unavailable: it was late, or an earlier one has not ended yet.
    task<result<nlohmann::json>> ask();

  private:
    asio::io_context& io_;
    std::vector<std::string> words_;
    std::chrono::milliseconds timeout_;
    std::unique_ptr<helper> running_;
    helper::clock::time_point begun_{};
};

}  // namespace banyan::fault
