// SPDX-License-Identifier: BSD-3-Clause
//
// What the daemon's log and its figures say.
#pragma once

#include <sstream>
#include <string>

#include <fmt/format.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include "fault/metrics/metrics.hpp"

namespace banyan::fault::testing {

/// Hears the log while it lives.
class ears {
  public:
    ears() {
        spdlog::set_default_logger(
            std::make_shared<spdlog::logger>("ears", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
    }
    ~ears() { spdlog::set_default_logger(before_); }
    ears(const ears&) = delete;
    ears& operator=(const ears&) = delete;

    int times(const std::string& words) const {
        const auto text = log_.str();
        int out = 0;
        for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++out;
        return out;
    }

  private:
    std::ostringstream log_;
    std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

/// Incidents of a reason, of which people were told.
inline int incidents_counted(const metrics& figures, const std::string& reason) {
    const auto text = figures.text(),
               series = fmt::format("\nbanyan_fault_incidents_total{{reason=\"{}\"}} ", reason);
    const auto at = text.find(series);
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + series.size()));
}

}  // namespace banyan::fault::testing
