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
#include "fault/policy/limiter.hpp"
#include "fault/sources/kernel_log.hpp"

namespace banyan::fault {

/// Made by load_config, which knows the defaults.
struct config {
    std::string node;
    std::string munge_socket, ckptd_socket, snapshot;
    std::string controller, bind, socket, history, policy, opensm_log, kmsg, root, metrics;
    std::uint16_t port = 0, ckptd_port = 0;
    bool dry_run = true;
    bool encrypt = false;         ///< what goes between agents and controller; done where either wants it
    std::string kmsg_trust_word;  ///< kernel, syslog or injected
    std::vector<std::string> discover;
    std::chrono::milliseconds window{}, seal_timeout{}, discover_timeout{}, settle{}, breaker_window{},
        max_event_age{};
    std::uint32_t drains_per_hour = 0, drains_percent = 0, breaker_percent = 0;

    policy_limits limits() const;
    kmsg_trust kmsg_belief() const;
    /// As TOML, every key.
    std::string dump() const;
};

/// `path` empty = defaults; `node` empty = the short host name.
result<config> load_config(const std::filesystem::path& path, std::string node);

}  // namespace banyan::fault
