// SPDX-License-Identifier: BSD-3-Clause
//
// Makes events for the tests of fault/ from log lines, as an agent does.
#pragma once

#include <string>

#include "fault/event.hpp"

namespace banyan::fault::testing {

inline event event_of(const std::string& line, std::int64_t line_ms = 1'000'000, std::uint64_t position = 0,
                      const std::string& node = "n03") {
    kernel_parser parser;
    auto found = parser.line(line);
    event e;
    if (!found.fault) return e;
    e.fault = *found.fault;
    e.node = node;
    e.boot_id = "boot";
    e.stream = "s";
    e.position = position;
    e.line_ms = line_ms;
    e.gpu = e.fault.bdf.size() == 10 ? e.fault.bdf[6] - '0' : -1;  // "0000:03:00" is GPU 3: see gpu_line
    e.text = line;
    return e;
}

/// A line about GPU `gpu` (one digit), whose PCI address is 0000:<gpu>0:00.
inline std::string gpu_line(int gpu, const std::string& code_and_rest) {
    return "NVRM: Xid (PCI:0000:0" + std::to_string(gpu) + ":00): " + code_and_rest;
}

}  // namespace banyan::fault::testing
