// SPDX-License-Identifier: BSD-3-Clause
//
// Where the node's GPUs and HCAs are: the PCIe switch that each shares with others, and its NUMA node.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/result.hpp"

namespace banyan::hardware {

struct pci_place {
    std::string bdf;   ///< "0000:13:00": without the function, whose card is one
    std::string name;  ///< "mlx5_0"; GPUs have none
    std::string
        pci_switch;  ///< "0000:11:00.0": the nearest bridge above that others share; empty: it has none
    int numa = -1;   ///< -1: not known, or several
    bool operator==(const pci_place&) const = default;
};

inline constexpr std::size_t most_pci_places = 256;

/// By libhwloc; may hang with a device.
result<std::vector<pci_place>> look_at_pci();

nlohmann::json to_json(const std::vector<pci_place>& places);
result<std::vector<pci_place>> pci_places_from(const nlohmann::json& told);

}  // namespace banyan::hardware
