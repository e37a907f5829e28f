// SPDX-License-Identifier: BSD-3-Clause
//
// The commands of banyan-fault: each asks the controller's Unix socket and prints. Returns the exit code.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/json_fields.hpp"
#include "common/result.hpp"
#include "fault/incident/filter.hpp"

namespace banyan::fault {

class client {
  public:
    explicit client(std::string config_path) : config_path_(std::move(config_path)) {}

    /// `since` and `until` as moment.hpp reads them; those of `wanted` are not looked at.
    int incidents(incident_filter wanted, const std::string& since, const std::string& until, bool json,
                  bool follow);
    int explain(const std::string& id, bool json);
    int status(bool json);
    int agents(bool json);
    /// Lines of a node and its NVLink domain, "-" where it has none; not of those that have not told.
    int nvlink_domains();
    int close(const std::string& id);
    /// approve, retry or cancel.
    int rule_on(const char* ruling, const std::string& id);
    int resume(const std::string& node);
    int reset_breaker();
    int check_config();

  private:
    result<nlohmann::json> ask(const nlohmann::json& request, int timeout_s = 20);
    int failed(const error& e) const;
    int makes_no_sense(const error& e) const;
    int follow_incidents(const incident_filter& wanted, bool json);
    int list_incidents(const incident_filter& wanted, bool json);

    std::string config_path_;
};

class any_log;
/// What was not turned into events, and why: nobody should take silence for health.
void tell(const any_log& log, std::uint64_t cut);

/// What the policy's commands have in common. `policy` empty: the one that banyan.conf names.
struct policy_call {
    std::string config, policy;
    bool json = false;
};
// Without the controller (policy.cpp, policy_test.cpp). Exit codes: 0; 1 the policy is wrong (check); 2 wrong
// use, configuration or policy; 3 a file cannot be read.
int policy_check(const policy_call& call);
int policy_explain(const policy_call& call);
int policy_test(const policy_call& call, const std::string& log, const std::string& format);

/// The events in a log, one JSON object a line; asks no controller. "-" is the standard input. `branch`: the
/// GPU driver's, 0 for not known.
int parse_log(const std::string& path, const std::string& format, std::uint32_t branch);

// Tables of at most 100 columns (print.cpp), of whatever the controller has said.
std::string incident_header();
std::string incident_row(const json_fields& incident);
std::string incident_story(const json_fields& incident);
std::string agent_table(const std::vector<json_fields>& agents);
std::string nvlink_domain_lines(const std::vector<json_fields>& agents);
std::string status_text(const json_fields& status);

}  // namespace banyan::fault
