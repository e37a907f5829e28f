// SPDX-License-Identifier: BSD-3-Clause
//
// The agent's look at the error counters of the node's HCAs, now and then: one that rises faster than its
// limit is an event of that HCA. A node without HCAs is told of once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "fault/agent/look.hpp"
#include "fault/agent/sight.hpp"
#include "fault/config.hpp"
#include "fault/sources/hca_rates.hpp"
#include "fault/sources/kernel_fault.hpp"

namespace banyan::fault {

/// Takes what a look at the hardware found, with the text that people read.
using finding_sink = std::function<void(kernel_fault fault, std::string text)>;

class counter_watch {
  public:
    /// `settings` must outlive it.
    counter_watch(asio::io_context& io, const config& settings, std::shared_ptr<metrics> counters,
                  finding_sink to);
    /// Looks for ever, in `io`; not at all where [fault] hca_poll_interval is 0 or hca_counters is empty.
    void start();

    /// What a look told; the watch itself calls it.
    void after_look(const result<nlohmann::json>& told, hca_rates::clock::time_point now);
    const std::set<std::string>& blind() const { return sight_.blind(); }
    /// How many ports the last look showed that could be done; none: there was no such look.
    std::optional<std::size_t> ports() const { return ports_; }

  private:
    task<void> run();

    asio::io_context& io_;
    const config& config_;
    finding_sink sink_;
    look look_;
    hca_rates rates_;
    sight sight_;
    std::optional<std::size_t> ports_;
};

}  // namespace banyan::fault
