// SPDX-License-Identifier: BSD-3-Clause
//
// What names of hosts and switches say.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace banyan::topo {

/// The order of hosts: as people count, "lassen2" before "lassen10". No two names are equal in it.
bool before_by_number(std::string_view a, std::string_view b);

/// Whether a switch has the description it left the factory with: "Quantum Mellanox Technologies".
bool is_factory_switch(std::string_view description);

/// Whether a host name is that of a storage server by custom: "oss01", "nas-3", "lustre-mds2".
bool is_storage_name(std::string_view host);

/// Whether a host name is that of a fabric manager or a gateway by custom: "ufm01", "opensm", "gw2".
bool is_manager_name(std::string_view host);

/// What a switch's name calls it: "MF0;leaf-01:MQM9790/U1" and a director's "core1/L03/U2" a leaf, "/S01/U1"
/// something above.
enum class switch_role : std::uint8_t { untold, leaf, upper };
switch_role role_in_name(std::string_view description);
/// "leaf-01" of "MF0;leaf-01:MQM9790/U1", "dir1/L03/U2" of "MF0;dir1:CS8500/L03/U2".
std::string short_switch_name(std::string_view description);

/// Whether it is a director's: "/L03/".
bool is_line_card(std::string_view description);

}  // namespace banyan::topo
