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
#include "fault/sources/hca_rates.hpp"
#include "fault/sources/kernel_log.hpp"

namespace banyan::fault {

enum class program_log : std::uint8_t { fabric_manager, nccl };
std::string_view name_of(program_log format);

/// A log of a program that the agent follows.
struct log_source {
    program_log format = program_log::fabric_manager;
    std::string path;
};

/// How long a job that is said to go on is followed.
struct verification_limits {
    /// Until a new step runs: KillWait, and some seconds for Slurm. banyan-run asks for it meanwhile.
    std::chrono::milliseconds step{45'000};
    /// Of nodes that have not ended the last run of a job after all others have.
    std::chrono::milliseconds holding{5'000};
    /// Until a training step is complete: it may be one of many minutes. Said, and nothing is done.
    std::chrono::milliseconds training{900'000};
    /// Between two looks.
    std::chrono::milliseconds pause{250};
    /// Of a job that goes into the queue, or on: its processes may take KillWait and an epilog to end.
    std::chrono::milliseconds settling{150'000};
};

/// Made by load_config, which knows the defaults.
struct config {
    std::string node;
    std::string munge_socket, ckptd_socket, snapshot, avoid, names, site;
    std::string controller, bind, socket, agent_socket, history, policy, opensm_log, ufm_log, kmsg, root,
        metrics;
    std::uint16_t port = 0, ckptd_port = 0;
    bool dry_run = true;
    bool encrypt = false;         ///< what goes between agents and controller; done where either wants it
    std::string kmsg_trust_word;  ///< kernel, syslog or injected
    std::vector<std::string> fabric_dump_command, sm_probe_command, logs, hca_counters;
    std::chrono::milliseconds correlation_window{}, seal_timeout{}, fabric_dump_timeout{}, fabric_debounce{},
        sm_probe_grace{}, breaker_window{}, max_event_age{}, avoid_for{}, hca_poll_interval{},
        gpu_poll_interval{};
    std::chrono::milliseconds avoid_pause{
        10'000};  ///< in no file: how often links are looked at that are kept off
    /// In no file: what of it the agent is to run when a sweep is asked for, how long that may take, and for
    /// how long what it found stands.
    std::string sweep_program = "banyan-sweep";
    /// On the command line: systemd keeps this process in a sandbox, and is to run that program outside, by
    /// this one.
    bool sandboxed = false;
    std::string unit_program = "systemd-run";
    std::chrono::milliseconds sweep_timeout{60'000}, sweep_again{300'000};
    /// And for how long the controller waits for the agent to be there, and beyond that for its answer.
    std::chrono::milliseconds sweep_on_its_way{10'000};
    std::string file;            ///< which was loaded; empty: none
    verification_limits verify;  ///< in no file: what the ladder itself needs
    bool hca_events = false;
    /// In no file, as what follows. libibverbs, as dlopen finds it.
    std::string verbs_library = "libibverbs.so.1";
    /// In no file: the program that looks at the node's hardware for the agent, which is this one, and how
    /// long it may take.
    std::string look_program = "/proc/self/exe";
    std::chrono::milliseconds look_timeout{20'000};
    std::uint32_t drains_per_hour = 0, drains_percent = 0, breaker_percent = 0, avoid_percent = 0;

    policy_limits limits() const;
    kmsg_trust kmsg_belief() const;
    std::vector<log_source> log_sources() const;
    std::vector<counter_limit> counter_limits() const;
    /// As TOML, every key.
    std::string dump() const;
};

/// `path` empty = defaults; `node` empty = the short host name.
result<config> load_config(const std::filesystem::path& path, std::string node);

}  // namespace banyan::fault
