// SPDX-License-Identifier: BSD-3-Clause
//
// What the daemon is told: [ckptd] and [munge] of banyan.conf and its own command line.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "common/result.hpp"

namespace banyan::ckpt {

/// Made by load_settings, which knows the defaults.
struct settings {
    std::string node;  ///< this node's name (default: short host name)
    std::string socket;
    std::string bind;
    std::uint16_t port = 0;
    std::chrono::milliseconds retention{};
    /// A step that lacks shards for longer is told to the user.
    std::chrono::milliseconds commit_warning_after{};
    /// A node that does not answer while the ranks wait for their state is waited for so long; 0 = for ever.
    std::chrono::milliseconds restore_timeout{};
    std::uint64_t memory_limit = 0;
    std::uint64_t job_memory_limit = 0;  ///< of one job's ranks and copies on a node; 0 = memory_limit
    std::string huge_pages;              ///< "auto": in huge pages, where there are; "off"
    std::uint32_t keep = 0;              ///< committed steps kept in storage
    std::uint32_t threads = 0;           ///< checksums and memory, of each user; other daemons' data, munge
    std::uint32_t storage_threads = 0;   ///< of each user, so that stuck storage holds up nobody else
    std::string munge_socket;
    bool encrypt = false;      ///< what goes between daemons; done where either of two wants it
    std::string agent_socket;  ///< of the fault daemon's agent: [fault] agent_socket
    std::string metrics;       ///< ADDRESS:PORT for Prometheus; empty for none
    std::string log_level;
    bool exit_when_idle = false;

    std::uint64_t job_limit() const {
        return job_memory_limit == 0 ? memory_limit : std::min(job_memory_limit, memory_limit);
    }
    /// What helps a job that has reached it.
    std::string to_raise_job_limit() const {
        const bool own = job_memory_limit != 0 && job_memory_limit < memory_limit;
        return std::string("have ") + (own ? "job_memory_limit" : "memory_limit") +
               " in [ckptd] of banyan.conf raised";
    }
};

/// Reads banyan.conf (`path` empty = all defaults). `node` replaces %n in path values.
result<settings> load_settings(const std::filesystem::path& path, const std::string& node);
/// The tables as TOML, with every value in force.
std::string dump_settings(const settings& s);
/// Host name up to the first dot.
std::string short_host_name();

}  // namespace banyan::ckpt
