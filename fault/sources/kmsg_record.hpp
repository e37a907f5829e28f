// SPDX-License-Identifier: BSD-3-Clause
//
// One record of /dev/kmsg: "prio,seq,usec,flags[,...];text", with \xNN escapes. A plain line is a record
// without the head. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace banyan::fault {

struct kmsg_record {
    bool has_head = false;
    std::uint32_t priority = 0;  ///< level (low 3 bits) and facility: 0 is the kernel, 1 root's own writes
    std::uint64_t sequence = 0;
    std::uint64_t usec = 0;  ///< since boot
    bool continued = false;  ///< the rest of a line that others' records cut: it may begin with a user's text
    std::string text;        ///< unescaped; control characters other than line feed are blanks
};

/// Never fails: what has no valid head is plain text. Invalid UTF-8 and control bytes are replaced; `dirty`
/// is set when there were any.
kmsg_record parse_kmsg(std::string_view raw, bool& dirty);

}  // namespace banyan::fault
