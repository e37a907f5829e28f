// SPDX-License-Identifier: BSD-3-Clause
//
// What the node descriptions of a fabric's HCAs say: which host has which device.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace banyan::topo {

struct hca_name {
    enum class trust : std::uint8_t { named, factory, generic, aggregation } kind = trust::named;
    std::string_view host;         ///< to be believed only when named
    std::string_view device_name;  ///< "mlx5_7"; empty when there is none
    /// How its host calls devices: "mlx5_", "rdma", `by_slot` where names tell the PCI slot. Each naming
    /// counts in an order of its own, so numbers of two are never compared: "mlx5_8" says nothing of where
    /// "ibp13s0" stands.
    std::string_view naming;
    /// Its place in that naming: N of mlx5_N, N - 1 of HCA-N, PCI domain, bus, slot and function of
    /// ibP2p1s0f1; `no_device` when the description tells none.
    std::uint64_t device = no_device;
    static constexpr std::uint64_t no_device = UINT64_MAX;
    static constexpr std::string_view by_slot = "slot";
};

/// "gpu0001 mlx5_7" -> {named, "gpu0001", "mlx5_7"}; "MT4129 ConnectX7   Mellanox Technologies" -> {factory};
/// "localhost mlx5_0" -> {generic}; "Mellanox Technologies Aggregation Node" -> {aggregation}. A site may
/// call its devices as it likes and, by nd_format of rdma-ndd(8), write them before the host or join both
/// with a sign: what most descriptions have says how all are read. The views are into `descriptions`.
std::vector<hca_name> read_hca_names(const std::vector<std::string_view>& descriptions);

/// The same of names that a reader made: the host is all before the first blank, and any device behind it.
std::vector<hca_name> split_hca_names(const std::vector<std::string_view>& names);

}  // namespace banyan::topo
