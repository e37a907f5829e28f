// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes of an NVLink domain that tell of their GPU 3.
#pragma once

#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "fault/incident/engine.hpp"
#include "fault/incident/nvlink_rules.hpp"
#include "test/unit/fault/lines.hpp"

namespace banyan::fault::testing {

inline const std::string one_domain = "01234567-89ab-cdef-0123-456789abcdef.1",
                         other_domain = "01234567-89ab-cdef-0123-456789abcdef.2";
inline const std::string link_74 =
    "74, NVLink: fatal error detected on link 3(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)";
inline const std::string lost_packets =
    "145, pid=7, name=python3, RLW_SRC_TRACK Nonfatal XC1 i0 Link -1 (0x000000e2 0x00000004 0x00000000)";
inline const std::string fell_149 =
    "149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x000005c6 0x00000000 0x00000000)";
inline const std::string own_149 =
    "149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x011005c6 0x00000000 0x00000000)";
inline const std::string ecc_74 =
    "74, NVLink: fatal error detected on link 3(0x10, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)";
inline const std::string parity = "145, RLW_TAGSTATE Fatal XC0 i0 Link -1 (0x00000102 0x00000002 0x00000000)";
inline const std::string off_the_bus = "79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";
inline const std::string wants_reset =
    "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)";
inline const std::string echo = "45, pid=7, name=python3, channel 0x00000008 caused by previous Xid 145";

struct domain_bench {
    engine e;
    std::int64_t at = 1'000'000;
    std::uint64_t told = 0;

    event made(const std::string& node, const std::string& rest, const std::string& domain = one_domain) {
        auto out = event_of(gpu_line(3, rest), at, ++told, node);
        out.boot_id = "boot of " + node;
        out.nvlink_domain = domain;
        return out;
    }
    engine::outcome say(const std::string& node, const std::string& rest,
                        const std::string& domain = one_domain, std::int64_t later = 1) {
        at += later;
        return e.absorb(made(node, rest, domain), at);
    }
    /// A node that does not answer.
    std::uint64_t silent(const std::string& node, std::int64_t later) {
        incident i;
        i.object.node = node;
        i.reason = silent_reason;
        i.own_fault = true;
        i.nvlink_domain = one_domain;
        i.line_ms = at += later;
        i.root_precedence = static_cast<std::uint8_t>(precedence::node_out);
        return e.open(i, at).number;
    }
    /// The one that is open: what became evidence of it is closed.
    const incident& only() const {
        const incident* open = nullptr;
        for (const auto& [number, i] : e.all()) {
            if (was_folded(i)) continue;
            REQUIRE(open == nullptr);
            open = &i;
        }
        REQUIRE(open);
        return *open;
    }
    incident& last() { return *e.find(e.all().rbegin()->first); }
};

inline std::string node_name(int n) { return fmt::format("n{:02}", n); }

}  // namespace banyan::fault::testing
