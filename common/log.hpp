// SPDX-License-Identifier: BSD-3-Clause
//
// Logging of daemons and tools: spdlog to standard error (the journal's input) or to a file that is followed
// by name. Tools and daemons call setup_log once in main; libraries only use spdlog's free functions. Plugins
// inside Slurm use Slurm's logger instead and never call this.
#pragma once

#include <chrono>
#include <string>
#include <unordered_map>

#include <spdlog/spdlog.h>

#include "common/clock.hpp"
#include "common/result.hpp"

namespace banyan {

/// `program` heads every line. `file` empty = standard error. `level` is trace, debug, info, warn, error or
/// off.
result<void> setup_log(const std::string& program, const std::string& file, const std::string& level);

/// Lets a repeated message through at most once per interval, with the count of those held back. Not
/// thread-safe: one per owner.
class log_limiter {
  public:
    /// `places`: for so many keys. Whoever comes when all of them are taken shares one place with all others:
    /// a flood under ever new keys grows neither memory nor the log. Whoever can cause one has an own
    /// limiter.
    explicit log_limiter(std::chrono::seconds interval = std::chrono::seconds(60), std::size_t places = 128)
        : interval_(interval), places_(places) {}

    /// True when the message under `key` should be written now; `held_back` gets the number of those not
    /// written since.
    bool pass(const std::string& key, clock::time_point now, std::uint64_t& held_back);

  private:
    struct entry {
        clock::time_point last;
        std::uint64_t held_back = 0;
    };
    std::chrono::seconds interval_;
    std::size_t places_;
    std::unordered_map<std::string, entry> entries_;
    clock::time_point swept_{};
};

}  // namespace banyan
