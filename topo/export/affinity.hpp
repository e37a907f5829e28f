// SPDX-License-Identifier: BSD-3-Clause
//
// Which HCA is nearest to which GPU, by the lowest common ancestor in the PCIe tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topo/export/machine.hpp"
#include "topo/export/node_types.hpp"

namespace banyan::topo {

/// The way between two devices, nearest first; the names are those of `nvidia-smi topo -m`.
enum class pcie_path : std::uint8_t {
    pix,   ///< one PCIe switch
    pxb,   ///< several PCIe switches
    phb,   ///< a host bridge
    node,  ///< host bridges of one NUMA node
    sys,   ///< several NUMA nodes
};
std::string_view name_of(pcie_path p);  ///< "PIX"
std::string_view text_of(pcie_path p);  ///< "one PCIe switch"

struct gpu_affinity {
    std::string busid;
    int numa = -1;
    pcie_path path = pcie_path::sys;   ///< to the nearest HCAs
    std::vector<std::string> nearest;  ///< device names, by rail; several that are equally near
    std::string paired;  ///< one of them: GPUs with the same choice take turns; empty = no HCA at all
    int rail = -1;       ///< of the paired one
};

struct affinity_table {
    std::vector<gpu_affinity> gpus;    ///< by bus id, which is CUDA's order with CUDA_DEVICE_ORDER=PCI_BUS_ID
    std::vector<std::string> missing;  ///< HCAs of the type that the machine lacks
    std::vector<std::string> unused;   ///< HCAs of the machine that are on no rail: storage, or no cable
};

affinity_table affinity_of(const machine& m, const node_type& type);

/// Names of the type's devices, by rail.
std::vector<std::string> devices_of(const node_type& type);

}  // namespace banyan::topo
