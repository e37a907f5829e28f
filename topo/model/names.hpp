// SPDX-License-Identifier: BSD-3-Clause
//
// What a node description says, and how far it can be believed.
#pragma once

#include <cstdint>
#include <string_view>

namespace banyan::topo {

struct hca_name {
    enum class trust { named, factory, aggregation } kind = trust::named;
    std::string_view host;              ///< empty unless named
    std::uint32_t device = UINT32_MAX;  ///< N of mlx5_N or HCA-N; UINT32_MAX when the description has none
};

/// "gpu0001 mlx5_7" -> {named, "gpu0001", 7}; "MT4129 ConnectX7   Mellanox Technologies" -> {factory};
/// "Mellanox Technologies Aggregation Node" -> {aggregation}.
hca_name read_hca_name(std::string_view description);

}  // namespace banyan::topo
