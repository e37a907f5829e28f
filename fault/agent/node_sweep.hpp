// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-sweep on this node, when the controller asks for it: in a process of its own with a time limit, one
// at a time, and not again within some minutes, whoever asks how often.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "common/timer.hpp"
#include "fault/agent/helper.hpp"
#include "fault/config.hpp"

namespace banyan::fault {

struct sweep_answer {
    std::string verdict;  ///< "fit", "unfit" or "unknown", as a rule's `swept` has it
    std::string text;     ///< what was found, or why it is not known
};

class node_sweep {
  public:
    node_sweep(asio::io_context& io, const config& settings) : io_(io), config_(settings), ended_(io) {}

    /// Who asks while one is under way, or shortly after it, gets what that one found;
    /// but that it was fit is no answer to what is asked since.
    task<sweep_answer> ask();

  private:
    task<sweep_answer> sweep();

    asio::io_context& io_;
    const config& config_;
    timer ended_;
    bool under_way_ = false;
    std::unique_ptr<helper> running_;
    std::optional<sweep_answer> last_;
    helper::clock::time_point begun_at_{}, last_at_{};
};

/// Of what banyan-sweep printed, and the code that it ended with.
sweep_answer read_sweep(const std::string& json, int code);

}  // namespace banyan::fault
