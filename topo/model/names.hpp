// SPDX-License-Identifier: BSD-3-Clause
//
// What a node description says, and how far it can be believed.
#pragma once

#include <cstdint>
#include <string_view>

namespace banyan::topo {

struct hca_name {
    enum class trust { named, factory, generic, aggregation } kind = trust::named;
    std::string_view host;              ///< to be believed only when named
    std::string_view device_name;       ///< "mlx5_7"; empty when there is none
    std::uint32_t device = UINT32_MAX;  ///< N of mlx5_N or HCA-N; UINT32_MAX when the description has none
};

/// "gpu0001 mlx5_7" -> {named, "gpu0001", 7}; "MT4129 ConnectX7   Mellanox Technologies" -> {factory};
/// "localhost mlx5_0" -> {generic, 0}; "Mellanox Technologies Aggregation Node" -> {aggregation}.
hca_name read_hca_name(std::string_view description);

/// Whether a switch has the description it left the factory with: "Quantum Mellanox Technologies".
bool is_factory_switch(std::string_view description);

/// Whether a host name is that of a storage server by custom: "oss01", "nas-3", "lustre-mds2".
bool is_storage_name(std::string_view host);

}  // namespace banyan::topo
