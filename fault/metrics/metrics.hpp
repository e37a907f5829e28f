// SPDX-License-Identifier: BSD-3-Clause
//
// The few numbers that Prometheus gets. Off unless [fault] metrics names an address; counting works all the
// same. Never asks Slurm for anything.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/result.hpp"
#include "fault/sources/kernel_fault.hpp"

namespace banyan::fault {

class metrics {
  public:
    metrics();
    ~metrics();
    metrics(const metrics&) = delete;
    metrics& operator=(const metrics&) = delete;

    /// "127.0.0.1:9712"; port 0 = any free one. The address that it listens on.
    result<std::string> serve(const std::string& address);
    /// What is served.
    std::string text() const;

    void count_line(bool dirty);
    void count_lost(std::uint64_t lines);
    void count_event(const kernel_fault& fault);
    void count_incident(const std::string& reason, double line_to_incident_seconds);
    void count_action(const std::string& what, bool done);
    void set_queue(std::size_t events);
    /// How many things of a kind ("hcas") the agent wants to look at, and cannot.
    void set_blind(const std::string& of, std::size_t things);
    void set_agents(std::size_t connected);
    void set_open(std::size_t incidents);
    /// Of incidents that are open: how many there are of each reason, and how many wait for room or a word.
    void set_reasons(const std::map<std::string, std::size_t>& open, std::size_t held);
    void set_breaker(bool open);
    void set_dry_run(bool on);
    /// The policy file was wrong when it was read again.
    void set_policy_wrong(bool wrong);

  private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace banyan::fault
