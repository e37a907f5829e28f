// SPDX-License-Identifier: BSD-3-Clause
//
// The topology file that NCCL_TOPO_FILE names: one machine's NUMA nodes, PCIe switches, GPUs and the HCAs
// that are on a rail. NCCL adds what only its driver knows (compute capability, NVLinks, rank).
//
// Format: as NCCL reads it (NVIDIA/nccl, src/graph/xml.cc and topo.cc): <system version="1"> holds <cpu
// numaid=>, these hold <pci busid= class= link_speed= link_width=>, nested below PCIe switches; <nic><net
// name= port= speed=/> stands in the HCA's <pci>. NCCL's reader is no XML parser: no prolog, one blank
// between attributes, at most 255 bytes in a value. Written with TinyXML-2: pugixml has a blank before "/>",
// which NCCL takes for one more attribute, without a name.
#pragma once

#include <cstdint>
#include <string>

#include "topo/export/machine.hpp"
#include "topo/export/node_types.hpp"

namespace banyan::topo {

std::string nccl_topology_xml(const machine& m, const node_type& type, std::uint32_t source_crc);

/// A link's speed and width as NCCL names them.
struct pcie_link {
    std::string speed;   ///< "32.0 GT/s PCIe"; empty = not known
    unsigned width = 0;  ///< lanes; 0 = not known
};
/// The one that comes nearest to so many GB/s: sixteen lanes where they fit, since hwloc tells the product
/// alone.
pcie_link link_of(double gbytes_per_s);

}  // namespace banyan::topo
