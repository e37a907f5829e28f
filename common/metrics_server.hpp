// SPDX-License-Identifier: BSD-3-Clause
//
// Where a daemon answers to Prometheus: by HTTP and to anybody who reaches the address, so that few places
// and short times are all that a caller gets. Its threads are its own; Collect() is called on them.
#pragma once

#include <memory>
#include <string>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "common/result.hpp"

namespace prometheus {
class Exposer;
}

namespace banyan {

class metrics_server {
  public:
    metrics_server();
    ~metrics_server();
    metrics_server(const metrics_server&) = delete;
    metrics_server& operator=(const metrics_server&) = delete;

    /// `address` is HOST:PORT, port 0 any free one; returns the one that it listens on. `table` is the
    /// section of banyan.conf that a mistake is to be looked for in. What is shown is the caller's.
    result<std::string> open(const std::string& address, const std::shared_ptr<prometheus::Collectable>& what,
                             const std::string& table);

  private:
    std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace banyan
