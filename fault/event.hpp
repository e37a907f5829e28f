// SPDX-License-Identifier: BSD-3-Clause
//
// What an agent tells the controller: one fault line of one node, with a name (node, boot, stream, position)
// that is never used twice, so that sending it again does no harm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "common/json_fields.hpp"
#include "common/result.hpp"
#include "fault/catalog/nvlink.hpp"
#include "fault/neighbours.hpp"
#include "fault/sources/kernel_fault.hpp"

namespace banyan::fault {

/// The end of the year 9999: a time that another host tells is not later, so that sums of two have room.
constexpr std::uint64_t latest_ms = 253'402'300'799'999;

struct event {
    std::string node, boot_id, stream;
    std::uint64_t position = 0;
    std::int64_t line_ms = 0;  ///< wall clock
    /// The same by the controller's clock, which alone knows it; none: not known how the node's clock goes.
    std::optional<std::int64_t> written_ms{};
    /// Of the agent alone: the time of day less a clock that nobody sets, both as line_ms became known.
    std::int64_t clock_gap_ms = 0;
    kernel_fault fault;
    int gpu = -1;                       ///< device minor, -1 when not known
    std::string uuid, serial;           ///< of the card; empty when not known
    std::string text;                   ///< the line, cleaned and cut
    std::uint64_t repeats = 0;          ///< equal lines that were held back since the last one sent
    std::uint32_t job = 0;              ///< whose process the line names, as its cgroup says; 0: not known
    std::optional<neighbours> place{};  ///< of its GPU or HCA, where the agent knows it
    std::string nvlink_domain{};        ///< of its node's GPUs: see gpus.hpp; empty: none, or not known

    std::string key() const;
};

/// How much an event weighs when it stands alone; see docs/runbook.
enum class precedence : std::uint8_t {
    sympathetic,  ///< a consequence: 45, an SXid's second line
    note,         ///< known and harmless
    app,          ///< speaks of the application
    alert,        ///< a person should look: unknown numbers, NVLink, support
    reset,        ///< the GPU must be reset, or a part of the node is of no use any more
    node_out,     ///< the machine must be restarted
};
precedence precedence_of(const kernel_fault& fault);
/// Of a line on an NVLink: what its registers ask for; unknown for any other.
catalog::link_ruling ruling_of(const kernel_fault& fault);
/// Worth sealing a checkpoint at once, before anybody has judged.
bool calls_for_seal(const kernel_fault& fault);

/// The driver's own verdict (Xid 154); the number decides, since the names changed between branches.
enum class recovery : std::uint32_t {
    none = 0,
    gpu_reset = 1,
    node_reboot = 2,
    drain_p2p = 3,
    drain_and_reset = 4
};

/// The NVLinks' domain in what an agent tells; empty where it tells none.
result<std::string> nvlink_domain_in(const json_fields& in);

/// With line_ms by the time of day that has that gap now: it may have been set since. How long ago stays.
event by_the_clock_of_now(event e, std::int64_t clock_gap_ms);

nlohmann::json to_json(const event& e);
result<event> event_from(const nlohmann::json& meta);

}  // namespace banyan::fault
