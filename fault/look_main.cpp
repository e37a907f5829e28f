// SPDX-License-Identifier: BSD-3-Clause
#include "fault/look_main.hpp"

#include <csignal>
#include <cstdio>

#include <nlohmann/json.hpp>
#include <sys/prctl.h>

#include "common/log_file.hpp"
#include "hardware/hca_counters.hpp"

namespace banyan::fault {
namespace {

nlohmann::json look_at_hcas(const std::string& root, const std::vector<std::string>& names) {
    const auto ports = hardware::read_counters(root, names);
    return ports ? hardware::to_json(*ports) : nlohmann::json{{"error", ports.error().text()}};
}

}  // namespace

int print_look(const std::string& what, const std::string& root, const std::vector<std::string>& names) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // for nobody, where the agent is gone
    nlohmann::json told;
    if (what == "hcas") {
        told = look_at_hcas(root, names);
    } else {
        say_fatal("banyan-faultd", "",
                  "there is nothing to look at that is called \"" + what + "\"; try hcas");
        return 2;
    }
    std::puts(told.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return 0;
}

}  // namespace banyan::fault
