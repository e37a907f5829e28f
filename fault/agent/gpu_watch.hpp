// SPDX-License-Identifier: BSD-3-Clause
//
// The agent's look at the GPUs by NVIDIA's library, now and then, and soon after the kernel tells of one:
// what the driver knows and no line of the kernel log said.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include <boost/asio/io_context.hpp>

#include "common/timer.hpp"
#include "fault/agent/counter_watch.hpp"
#include "fault/agent/look.hpp"
#include "fault/agent/sight.hpp"
#include "fault/sources/gpu_facts.hpp"

namespace banyan::fault {

class gpu_watch {
  public:
    /// `settings` must outlive it.
    gpu_watch(asio::io_context& io, const config& settings, std::shared_ptr<metrics> counters,
              finding_sink to);
    /// Looks for ever, in `io`; not at all where [fault] gpu_poll_interval is 0.
    void start();
    /// The kernel told of a GPU: the next look comes soon.
    void hurry();

    /// What a look told; the watch itself calls it. Whether the next one is to come soon.
    bool after_look(const result<nlohmann::json>& told);
    const std::set<std::string>& blind() const { return sight_.blind(); }
    /// How many GPUs the last look showed that could be done; none: there was no such look.
    std::optional<std::size_t> gpus() const { return gpus_; }
    /// The NVLink domain that the node's GPUs are in, "UUID.clique"; empty: in none, or in different ones. No
    /// value: it is not known yet.
    const std::optional<std::string>& nvlink_domain() const { return domain_; }

  private:
    task<void> run();
    void after_domains(const hardware::gpu_answers& gpus);

    asio::io_context& io_;
    const config& config_;
    finding_sink sink_;
    look look_;
    gpu_facts facts_;
    sight sight_;
    timer timer_;
    helper::clock::time_point looked_{};
    std::optional<std::size_t> gpus_;
    std::optional<std::string> domain_;
};

}  // namespace banyan::fault
