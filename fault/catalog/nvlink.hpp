// SPDX-License-Identifier: BSD-3-Clause
//
// What the registers in the driver's lines on NVLinks ask for: Xids 144 to 150 by a table generated from
// nvlink5.tsv, Xid 74 by its bits. The bucket decides, never the severity that the line prints. Whatever fits
// no row is unknown: nothing is guessed.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace banyan::fault::catalog {

enum class link_action : std::uint8_t {
    unknown,
    ignore,
    report,     ///< a person should look
    verdict,    ///< the driver's own (Xid 154) where it comes, else the application restarts
    reset_gpu,  ///< the GPU must be reset
};

/// Whose fault it is, or what a person should look at.
enum class link_look : std::uint8_t {
    none,
    support,
    daily,            ///< worth a report when it comes again
    follows,          ///< from another fault, where there is one
    follows_fabric,   ///< the same, and the fabric is to be reset
    link_flow,        ///< from a link that went down within the last 30 s, where there was one
    ecc,              ///< ECC or parity: hardware, where it comes more than twice on one link
    seat,             ///< the link's seat, then diagnostics
    signal,           ///< the link's signal
    cable,            ///< cable, module, temperature, seat
    software,         ///< software or a person
    software_signal,  ///< one of the two
    host,             ///< the node's other logs
    peer,             ///< the other end of the link went down first
};
std::string_view words_for(link_look look);

struct link_ruling {
    link_action action = link_action::unknown;
    link_look look = link_look::none;
    bool operator==(const link_ruling&) const = default;
};

/// Of Xids 144 to 150: `unit`, `info` and `status` as the line prints them. `branch`: the driver's, such as
/// 570, which says how `info` is laid out; 0: not known. Then both readings are tried, and they must not
/// differ.
link_ruling rule_nvlink5(std::uint32_t xid, std::string_view unit, std::uint32_t info, std::uint32_t status,
                         std::uint32_t branch);
/// Of Xid 74: its seven registers, as Hopper fills them.
link_ruling rule_nvlink4(std::span<const std::uint32_t> registers);

}  // namespace banyan::fault::catalog
