// SPDX-License-Identifier: BSD-3-Clause
//
// Addresses as numbers, for texts whose reader must not be led to look a name up. All calls are thread-safe.
#pragma once

#include <chrono>
#include <map>
#include <string>

namespace banyan {

/// An IPv4 or IPv6 address in numbers, without a zone.
bool is_numeric_address(const std::string& text);

/// `nodes` is name -> address or host name; what comes back has numbers only, the first one of each host.
/// Asks the resolver, one host after the other, and blocks; a host that it does not know, or that comes up
/// only after `most`, is left out.
std::map<std::string, std::string> numeric_addresses(const std::map<std::string, std::string>& nodes,
                                                     std::chrono::milliseconds most);

}  // namespace banyan
