// SPDX-License-Identifier: BSD-3-Clause
#include "common/metrics_server.hpp"

#include <vector>

#include <fmt/format.h>
#include <prometheus/exposer.h>

namespace banyan {

metrics_server::metrics_server() = default;
metrics_server::~metrics_server() = default;

result<std::string> metrics_server::open(const std::string& address,
                                         const std::shared_ptr<prometheus::Collectable>& what,
                                         const std::string& table) {
    try {
        auto opened = std::make_unique<prometheus::Exposer>(std::vector<std::string>{
            // Two threads and short timeouts: a caller that says nothing holds one for two seconds only.
            "listening_ports", address, "num_threads", "2", "request_timeout_ms", "2000", "enable_keep_alive",
            "no"});
        opened->RegisterCollectable(what);
        const auto ports = opened->GetListeningPorts();
        exposer_ = std::move(opened);
        return fmt::format("{}:{}", address.substr(0, address.rfind(':')), ports.empty() ? 0 : ports.front());
    } catch (const std::exception& e) {  // civetweb's own words say little
        return fail(errc::unavailable, fmt::format("cannot serve metrics on {}: {}", address, e.what()),
                    fmt::format("see [{}] metrics", table));
    }
}

}  // namespace banyan
