// SPDX-License-Identifier: BSD-3-Clause
//
// One event as `banyan-fault parse` shows it, whichever log it stood in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fault/event.hpp"
#include "fault/sources/opensm_log.hpp"

namespace banyan::fault {

struct reading {
    std::string source;  ///< the format: "kernel", "opensm", "ufm", "fabric-manager", "nccl"
    std::string time;    ///< as it is printed; empty when the line has none
    std::string node;    ///< host or switch; empty when the line names none
    std::string device;  ///< "0000:5d:00", "nvme0", "mlx5_3", "port 33"
    std::string kind;    ///< "xid", "sxid", "bus-loss", a symptom's name, "link-down" ...
    std::optional<std::uint64_t> code;
    std::string_view severity;  ///< notice, warning, error, fatal
    std::string_view action;    ///< none, job, alert, drain, node-out: by default, for this line alone
    std::string text;
    std::optional<kernel_fault> fault;  ///< what the kernel told, as the agents send it; not shown
};

/// With the severity and the action that belong to `weight`.
reading weighed(precedence weight);
reading reading_of(const kernel_fault& fault, std::string_view text);
/// Nothing for what tells of no change.
std::optional<reading> reading_of(const opensm_event& found);

// Of logs that are not the kernel's: nothing for a line of another form; `form` is set when the line has the
// form at all.

std::optional<reading> ufm_reading(std::string_view text, bool& form);
std::optional<reading> fabric_manager_reading(std::string_view text, bool& form);
std::optional<reading> nccl_reading(std::string_view text, bool& form);

/// One line of JSON, with every key.
std::string json_line(const reading& r);

}  // namespace banyan::fault
