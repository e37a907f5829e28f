// SPDX-License-Identifier: BSD-3-Clause
//
// What a dump cannot tell of a fabric: the errors that its ports count, the firmware of its nodes, its subnet
// managers. A link that is up and bad slows every job on it, and no list of links shows it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <banyan/topo/enum_array.hpp>
#include <banyan/topo/fabric.hpp>

#include "common/result.hpp"

namespace banyan::topo {

/// Counters that accuse the link itself (IBTA volume 1, 16.1.3.5). Left out is what congestion counts
/// (PortXmitDiscards, PortXmitWait), what partitions and routes do (constraint and relay errors), and what an
/// earlier link spoiled (PortRcvRemotePhysicalErrors).
enum class link_counter : std::uint8_t {
    symbol_errors,
    recoveries,
    downed,
    receive_errors,
    local_integrity,
    buffer_overruns
};
inline constexpr std::size_t link_counter_count = 6;
std::string_view name_of(link_counter c);  ///< "SymbolErrorCounter", as the tools call it
template <class Value>
using by_link_counter = enum_array<link_counter, Value, link_counter_count>;

/// What one port counted since it was cleared.
struct port_errors {
    guid id = 0;            ///< of its node, or its own; 0 = not told
    guid port_id = 0;       ///< its own, beside that of the node; 0 = not told
    std::uint32_t lid = 0;  ///< 0 = not told
    std::uint16_t port = 0;
    std::string name;                        ///< description of its node, where the tool gives it
    by_link_counter<std::uint64_t> count{};  ///< 0 also where the tool did not tell it
    double effective_ber = 0,
           symbol_ber = 0;  ///< errors a bit, after the link's own correction; 0 = none or untold
};

struct node_firmware {
    guid id = 0;
    std::string version;  ///< "28.39.1002"
    std::string board;    ///< PSID; empty = not told
    std::uint32_t device = 0;
};

struct health {
    std::vector<port_errors> ports;
    std::vector<node_firmware> firmware;
    std::vector<subnet_manager> managers;
    bool counters_told = false;    ///< a tool looked at counters, though it may have found none to tell
    bool managers_listed = false;  ///< all of them were asked for; sminfo asks the master alone
    std::size_t skipped_lines = 0;
};

constexpr std::size_t max_health_bytes = std::size_t{1} << 30;

/// Adds what is in the text to `out`: ibqueryerrors (also with -r and --details), perfquery (one output or
/// several), ibdiagnet's ibdiagnet2.db_csv (PM_INFO, NODES_INFO, SM_INFO) and net_dump_ext, a CSV of UFM's
/// telemetry, sminfo, saquery SMIR; told apart by what stands in it. An error where there is none of these,
/// or a section that is cut.
result<void> read_health(std::string text, health& out);

/// From which number on a port is bad, and who says so.
struct error_limits {
    by_link_counter<std::uint64_t> count{10, 10, 10, 10, 10, 10};  ///< more than that
    double ber = 1e-12;                                            ///< more than that, effective or symbol
    std::string count_source = "infiniband-diags' error_thresholds";
    std::string ber_source = "ibdiagnet's --ber_thresh";
};

/// The file of infiniband-diags (/etc/infiniband-diags/error_thresholds): lines of NAME=VALUE, # comments;
/// names of counters that are no link's are let by. BER=VALUE too. `name` of the file is for messages, and
/// what the limits then have as their source.
result<error_limits> read_error_limits(std::string_view text, const std::string& name);

/// How much of it found its place.
struct health_taken {
    std::size_t ports = 0, strangers = 0;  ///< ports of links here, and of nodes that are not here
};

/// Marks the links that are bad, lists them and what the rest tells among the defects, and takes the
/// managers; what the fabric had of that from an earlier time goes, where `h` has something newer.
health_taken apply_health(fabric& f, const health& h, const error_limits& limits = {});

}  // namespace banyan::topo
