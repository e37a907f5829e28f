// SPDX-License-Identifier: BSD-3-Clause
//
// [fault] of banyan.conf as a value, with what the daemon needs of the other tables. Loaded and checked once.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "fault/policy/policy.hpp"
#include "fault/sources/kernel_log.hpp"

namespace banyan::fault {

struct config {
    std::string node;
    std::string munge_socket, ckptd_socket, snapshot;
    std::string controller = "localhost", bind = "*", socket, history, opensm_log, kmsg, root, metrics;
    std::uint16_t port = 572;
    bool dry_run = true;
    bool encrypt = false;  ///< what goes between agents and controller; done where either wants it
    kmsg_trust kmsg_belief = kmsg_trust::kernel;
    std::vector<std::string> discover;
    std::chrono::milliseconds window{30'000}, seal_timeout{300}, discover_timeout{10'000}, settle{25},
        breaker_window{300'000}, max_event_age{600'000};
    std::uint32_t drains_per_hour = 8, breaker_percent = 50;

    policy_limits limits() const;
    /// As TOML, every key.
    std::string dump() const;
};

/// `path` empty = defaults; `node` empty = the short host name.
result<config> load_config(const std::filesystem::path& path, std::string node);

}  // namespace banyan::fault
