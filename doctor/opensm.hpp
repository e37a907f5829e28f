// SPDX-License-Identifier: BSD-3-Clause
//
// How the subnet manager of this host logs: its command line, and the configuration that this names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace banyan::doctor {

struct opensm_log_settings {
    bool flushes = false;  ///< every line at once
    std::string log;       ///< empty: opensm's own default
};

/// Of the subnet managers of this host (one a fabric) the one that logs to `log`, else any of them; nothing
/// where none runs.
result<std::optional<opensm_log_settings>> opensm_that_logs_to(const std::string& log);

/// The command line wins over the file.
opensm_log_settings judge_opensm(const std::vector<std::string>& command, std::string_view configuration);
/// The file that the command line names, else the usual one.
std::string opensm_configuration(const std::vector<std::string>& command);

}  // namespace banyan::doctor
