// SPDX-License-Identifier: BSD-3-Clause
//
// GPUs and HCAs of one machine and the PCIe tree that they hang on, read with libhwloc: of the machine that
// we run on, or from the XML that lstopo writes. hwloc's own types stay behind this header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace banyan::topo {

/// A NUMA node.
struct machine_cpu {
    int numa = -1;  ///< the kernel's number; -1 = the whole machine, where a device names no single node
    std::string affinity;               ///< its CPUs as the kernel writes masks: "00000000,ffffffff"
    std::string vendor, family, model;  ///< of its package; empty = not known
};

enum class io_kind : std::uint8_t { bridge, gpu, hca };

/// A PCI device. Bridges are PCI-to-PCI: the ports of PCIe switches, and root ports.
struct io_device {
    io_kind kind = io_kind::bridge;
    std::string busid;  ///< "0000:1b:00.0"
    std::uint16_t pci_class = 0, vendor = 0, device = 0, subsystem_vendor = 0, subsystem_device = 0;
    double gbytes_per_s = 0;  ///< of its link; 0 = not known
    /// Index of the bridge above; UINT32_MAX = right below the host bridge.
    std::uint32_t parent = UINT32_MAX;
    std::uint32_t host_bridge = 0;
    std::uint32_t cpu = 0;           ///< index into machine::cpus
    std::vector<std::string> names;  ///< of an HCA: its InfiniBand devices, "mlx5_0"
};

struct machine {
    std::string host_name, architecture;  ///< empty = not known
    std::vector<machine_cpu> cpus;
    std::vector<io_device> devices;  ///< parents before children, else by bus id
};

constexpr std::size_t max_hwloc_bytes = std::size_t{64} << 20;

/// `name` of the file is for messages. An error where hwloc cannot read the text, or finds no I/O devices in
/// it.
result<machine> read_hwloc_xml(const std::string& text, const std::string& name);
result<machine> read_live_machine();

/// What is left when only the GPUs and the HCAs with one of these names count: bridges that join fewer than
/// two branches go, which leaves the upstream port of each PCIe switch, as NCCL sees the tree.
machine prune(const machine& m, const std::vector<std::string>& hcas);

}  // namespace banyan::topo
