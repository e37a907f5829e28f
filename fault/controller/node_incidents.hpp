// SPDX-License-Identifier: BSD-3-Clause
//
// Incidents about whole nodes that no line of a log tells of: nothing answers there, or the node does not
// end a job's last run.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fault/controller/hearing.hpp"
#include "fault/controller/holders.hpp"
#include "fault/controller/records.hpp"

namespace banyan::fault {

/// Why the node that `i` says holds up a job is to be left alone after all; empty where it still may. `jobs`
/// have it now. `since_ms`: what was found earlier is stale.
std::optional<std::string> no_longer_stuck(const incident& i, const std::vector<job_status>& jobs,
                                           std::int64_t since_ms);

/// All calls on the io_context's thread.
class node_incidents {
  public:
    struct callbacks {
        std::function<std::string(const std::string& node)> boot_of;
        std::function<std::string(const std::string& node)> nvlink_domain_of{};
        std::function<void(std::uint64_t number, change what)> hear;
        std::function<void(const std::vector<std::uint64_t>& numbers)> folded{};
    };

    node_incidents(records& known, callbacks calls) : records_(known), calls_(std::move(calls)) {}

    /// `words`: what was asked, and what came.
    void silent(const std::string& node, const std::string& words);
    /// Cards of it of whose lost ports an incident is open, at most max_lost_cards, and the ports where they
    /// are known by name.
    std::vector<std::pair<std::string, std::vector<std::string>>> lost_ports(const std::string& node) const;
    /// Its agent is back.
    void back(const std::string& node);
    /// `found` hold up `job`, as it was when it ran, in the recovery of incident `number`.
    void held_up(std::uint64_t number, const job_status& job, const holders& found);

  private:
    incident made(const std::string& node, std::string_view reason, std::string cause) const;
    void open(incident i);
    void stuck(const std::string& node, const job_status& job, const std::string& words);

    records& records_;
    callbacks calls_;
};

}  // namespace banyan::fault
