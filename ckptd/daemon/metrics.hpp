// SPDX-License-Identifier: BSD-3-Clause
//
// What Prometheus sees of a checkpoint daemon: memory, and for each job that has a session here its newest
// steps by tier, its lag, and what was moved, lost and refused. Counters begin at 0 with the daemon and with
// the session; a job's numbers go with its session.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "ckptd/daemon/session.hpp"
#include "common/metrics_server.hpp"

namespace banyan::ckpt {

/// To be called where sessions may be read: on the daemon's io_context.
std::vector<prometheus::MetricFamily> numbers_of(const std::map<std::uint64_t, session_ptr>& sessions,
                                                 const memory_budget& memory);

/// What was told last, for the threads that answer. Thread-safe.
class metrics : public prometheus::Collectable {
  public:
    /// Answers on `address` from now on. Null, and the log says why, where that cannot be: a daemon that
    /// keeps checkpoints is worth more than its numbers.
    static std::shared_ptr<metrics> serve(const std::string& address);
    void tell(std::vector<prometheus::MetricFamily> now);
    std::vector<prometheus::MetricFamily> Collect() const override;

  private:
    metrics_server server_;
    mutable std::mutex lock_;
    std::vector<prometheus::MetricFamily> newest_;
};

}  // namespace banyan::ckpt
