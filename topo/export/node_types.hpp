// SPDX-License-Identifier: BSD-3-Clause
//
// Hosts of one kind: the same HCA devices on the same rails. One NCCL setting serves all hosts of a type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <banyan/topo/fabric.hpp>

namespace banyan::topo {

/// A port of a host that leads to a compute leaf. Two ports of an HCA that lead to different leaves are two
/// of these; the planes of one box are one, by their lowest port.
struct rail_device {
    std::uint16_t rail = 0;
    std::string device;      ///< "mlx5_0"; empty where the description names no kernel device
    std::uint16_t port = 0;  ///< of the HCA, from 1
    unsigned gbps = 0;       ///< the fastest among the hosts of the type; 0 = not known
};

struct node_type {
    std::vector<rail_device> devices;  ///< by rail, and in the order that people count in
    std::vector<std::uint32_t> hosts;  ///< ascending
    /// Two of its rails do not meet above the leaves: what one HCA sends never reaches the other rail.
    bool rails_apart = false;
};

/// The type with the most hosts first. Storage HCAs that the fabric's model knows as such are in none.
std::vector<node_type> node_types(const fabric& f);

/// The value of NCCL_IB_HCA in its exact form, "=mlx5_0:1,mlx5_3:1", in rail order. Devices without a name
/// are not in it; "=" alone never stands: it is empty where no device has a name. NCCL takes the list as a
/// filter (the order is for people), matches whole names where '=' leads, and reads "device:port"
/// (NVIDIA/nccl, src/transport/net_ib).
std::string nccl_ib_hca(const node_type& type);

}  // namespace banyan::topo
