// SPDX-License-Identifier: BSD-3-Clause
//
// What every Xid number asks for, as a table generated from xid.tsv. It is the fallback: when the driver
// prints its own verdict (Xid 154), that decides.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace banyan::fault::catalog {

/// What a number asks for when it stands alone.
enum class bucket : std::uint8_t {
    ignore,        ///< nothing to do
    advice,        ///< worth knowing, no action
    cleanup,       ///< 45: a consequence of another fault
    restart_app,   ///< the application is at fault or must restart; the hardware is fine
    support,       ///< unclear or unused: tell a person
    nvlink,        ///< 74, 144-150: needs decoding; the driver's verdict decides
    ecc_double,    ///< 48
    reset_gpu,     ///< the GPU must be reset
    restart_node,  ///< the machine must be restarted
    verdict,       ///< 154: the driver's own recovery action
};

struct xid_row {
    std::uint32_t code;
    enum bucket bucket;
    bool verdict_follows;  ///< recent drivers print an Xid 154 along with it
    std::string_view mnemonic;
    std::string_view description;
};

/// The row of `code`, or nullptr for a number that the table does not know.
const xid_row* find_xid(std::uint32_t code);
std::span<const xid_row> xids();
std::string_view name_of(bucket b);

}  // namespace banyan::fault::catalog
