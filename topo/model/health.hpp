// SPDX-License-Identifier: BSD-3-Clause
//
// The steps of apply_health.
#pragma once

#include <vector>

#include <banyan/topo/health.hpp>

namespace banyan::topo::build {

health_taken mark_bad_links(fabric& f, const health& h, const error_limits& limits);  // health.cpp
void find_odd_firmware(fabric& f, const std::vector<node_firmware>& all);             // firmware.cpp
void take_managers(fabric& f, const health& h);                                       // managers.cpp

}  // namespace banyan::topo::build
