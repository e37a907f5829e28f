// SPDX-License-Identifier: BSD-3-Clause
//
// How one word names a device.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace banyan::topo {

struct device_name {
    std::string_view naming;  ///< see hca_name
    std::uint64_t number = 0;
};

/// "mlx5_7" -> {"mlx5_", 7}, "HCA-1" -> {"mlx5_", 0}, "ibp3s0" -> {by_slot, 3 << 16}; any word that ends in a
/// number has the naming before it. Nothing where it tells no number: "ibx0c42a103001a2b3c" is a GUID.
std::optional<device_name> read_device_name(std::string_view word);

/// Whether Linux or rdma-core give a device such a name without being asked: "mlx5_0", "mlx5_ib0", "ibp3s0",
/// "rdma7".
bool is_usual_device(std::string_view word);

}  // namespace banyan::topo
