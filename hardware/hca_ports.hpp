// SPDX-License-Identifier: BSD-3-Clause
//
// The ports of the HCAs, as the kernel shows them in /sys/class/infiniband.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace banyan::hardware {

/// Where a port's files are.
struct port_place {
    std::string device, port;  ///< "mlx5_0", "1"; port "?" when `error` says why its device shows none
    std::filesystem::path folder{};
    std::string error{};

    std::string name() const { return device + "/" + port; }
};

/// Of all HCAs, in the order of their numbers. Fails where /sys itself is not there; a kernel without HCAs
/// has none. `root`: where sys/ is.
result<std::vector<port_place>> find_ports(const std::filesystem::path& root);

/// The PCI address of a device, "0000:3b:00.0"; empty for one that shows none, as simulated ones do.
std::string pci_address(const std::filesystem::path& root, const std::string& device);

/// What a port's files hold; `error` says which could not be read.
struct hca_port {
    std::string device, port;
    std::string state, phys_state, rate, layer;
    std::string error{};

    std::string name() const { return device + "/" + port; }
};

/// As find_ports.
result<std::vector<hca_port>> read_ports(const std::filesystem::path& root);

}  // namespace banyan::hardware
