// SPDX-License-Identifier: BSD-3-Clause
//
// The ports of the HCAs, as the kernel shows them in /sys/class/infiniband.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sweep/finding.hpp"

namespace banyan::sweep {

/// What its files hold; `error` says which could not be read.
struct hca_port {
    std::string device, port;  ///< "mlx5_0", "1"
    std::string state, phys_state, rate, layer;
    std::string error{};

    std::string name() const { return device + "/" + port; }
};

/// In the order of their numbers. Fails where /sys itself is not there; a kernel without HCAs has none.
result<std::vector<hca_port>> read_ports(const std::filesystem::path& root);

/// `wanted` ports have to be active with `rate` Gb/s or more. Ethernet ports do not count.
finding judge_ports(const std::vector<hca_port>& ports, std::uint32_t wanted, std::uint32_t rate);

}  // namespace banyan::sweep
