// SPDX-License-Identifier: BSD-3-Clause
//
// Whether TCP ports of other hosts can be reached: many at once, each within the same short time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace banyan::doctor {

struct target {
    std::string name;     ///< as people know it
    std::string address;  ///< a name or an address
    std::uint16_t port = 0;
};

enum class reach {
    open,        ///< somebody listens
    closed,      ///< the host answers that nobody does
    silent,      ///< no answer: the host is down, or a firewall drops the packets
    unresolved,  ///< the name has no address
    untried,     ///< there was no time left
};
constexpr std::size_t reach_kinds = 5;

/// How long all may take together: names that no server answers for, and hosts that are down, in a cluster of
/// ten thousand.
constexpr std::chrono::seconds whole_timeout{60};

/// One answer a target, in their order.
std::vector<reach> try_ports(const std::vector<target>& targets, std::chrono::milliseconds timeout,
                             std::chrono::milliseconds whole = whole_timeout);

}  // namespace banyan::doctor
