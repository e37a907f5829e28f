// SPDX-License-Identifier: BSD-3-Clause
//
// How many ports of the HCAs are as they should be.
#pragma once

#include <vector>

#include "hardware/hca_ports.hpp"
#include "sweep/finding.hpp"

namespace banyan::sweep {

using hardware::hca_port;
using hardware::read_ports;

/// `wanted` ports have to be active with `rate` Gb/s or more. Ethernet ports do not count.
finding judge_ports(const std::vector<hca_port>& ports, std::uint32_t wanted, std::uint32_t rate);

}  // namespace banyan::sweep
