// SPDX-License-Identifier: BSD-3-Clause
//
// What a node description says, and how far it can be believed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace banyan::topo {

/// How a host calls its devices. Each counts in an order of its own, so numbers of two of them are never
/// compared: "mlx5_8" says nothing of where "ibp13s0" stands.
enum class device_naming : std::uint8_t { kernel, mlx4, hfi1, qib, bnxt_re, net, roce, slot, own_guid };

struct hca_name {
    enum class trust { named, factory, generic, aggregation } kind = trust::named;
    std::string_view host;         ///< to be believed only when named
    std::string_view device_name;  ///< "mlx5_7"; empty when there is none
    device_naming naming = device_naming::kernel;
    /// Its place in that naming: N of mlx5_N, N - 1 of HCA-N, PCI domain, bus, slot and function of
    /// ibP2p1s0f1; `no_device` when the description tells none.
    std::uint64_t device = no_device;
    static constexpr std::uint64_t no_device = UINT64_MAX;
};

/// "gpu0001 mlx5_7" -> {named, "gpu0001", 7}; "MT4129 ConnectX7   Mellanox Technologies" -> {factory};
/// "localhost mlx5_0" -> {generic, 0}; "Mellanox Technologies Aggregation Node" -> {aggregation}.
hca_name read_hca_name(std::string_view description);

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
