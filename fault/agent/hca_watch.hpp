// SPDX-License-Identifier: BSD-3-Clause
//
// The agent's ear for what the HCAs tell by libibverbs' events: a process of its own opens the devices and
// prints a line for each; this begins it again when it ends, reads on without blocking, and makes faults of
// it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <boost/asio/io_context.hpp>

#include "fault/agent/counter_watch.hpp"
#include "fault/agent/helper.hpp"
#include "fault/agent/sight.hpp"
#include "fault/sources/hca_links.hpp"

namespace banyan::fault {

class hca_watch {
  public:
    /// `settings` must outlive it.
    hca_watch(asio::io_context& io, const config& settings, std::shared_ptr<metrics> counters,
              finding_sink to);
    /// Listens for ever, in `io`; not at all where [fault] hca_events is false.
    void start();

    /// One line of the process; the watch itself calls it.
    void after_line(const std::string& text);
    /// Of `card` an incident is open since an earlier life of the agent; see hca_links.
    void expect(const std::string& card, const std::vector<std::string>& ports);
    const std::set<std::string>& blind() const { return sight_.blind(); }
    /// How many devices are heard; none: it has not been told yet.
    std::optional<std::uint64_t> devices() const { return devices_; }

  private:
    task<void> run();
    task<error> listen();
    void tell(kernel_fault fault);

    asio::io_context& io_;
    const config& config_;
    finding_sink sink_;
    hca_links links_;
    sight sight_;
    std::unique_ptr<helper> running_;
    std::optional<std::uint64_t> devices_;
};

}  // namespace banyan::fault
