// SPDX-License-Identifier: BSD-3-Clause
//
// UFM's event log: "2024-06-20 07:46:24.442 [12] [329] WARNING [Link] Link [...]: Link went down: ...". Its
// stamps are local time without a zone: the reader's clock is used. A line is taken from its first byte on.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fault/event.hpp"

namespace banyan::fault {

/// A port as a subnet manager's log names it.
struct named_port {
    std::uint64_t guid = 0;  ///< of the node, as far as the log says
    std::uint32_t port = 0;
    auto operator<=>(const named_port&) const = default;
};

struct ufm_event {
    std::uint32_t code = 0;
    std::string_view kind;  ///< "link-down", "symbol-errors"
    precedence weight = precedence::alert;
    std::string time;               ///< as printed
    std::string node;               ///< switch or host
    std::string port;               ///< UFM's label: "1/17/1"; empty when the event is of a whole device
    std::uint64_t guid = 0;         ///< dev_id; 0 when it has none
    std::string ends;               ///< 328, 329: both ends, as printed
    std::vector<named_port> ports;  ///< ... and as numbers: none, or two
    std::string cable;              ///< its serial number, where it is told
    std::string text;
    /// Something of the fabric is gone, or is back: a look at the fabric says what.
    bool changes_fabric() const;
    /// What UFM's label means: "17" and "1/17" are 17; "1/17/1", of a cage with two ports, is 33. 0 where it
    /// is no number.
    std::uint32_t port_number() const;
};

/// `form`, where given, is set when the line has the form of this log at all.
std::optional<ufm_event> ufm_line(std::string_view text, bool* form = nullptr);

}  // namespace banyan::fault
