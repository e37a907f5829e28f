// SPDX-License-Identifier: BSD-3-Clause
//
// Where a GPU or HCA is in its node, and which others hang on the same PCIe switch.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/result.hpp"

namespace banyan::fault {

inline constexpr std::size_t most_neighbours = 32;

struct neighbours {
    struct card {
        std::string bdf, name;  ///< name: "mlx5_0"; GPUs have none
        std::string text() const { return name.empty() ? "GPU at " + bdf : name; }
        bool operator==(const card&) const = default;
    };
    std::string pci_switch;    ///< "0000:11:00.0"; empty: it shares none
    int numa = -1;             ///< -1: not known
    std::vector<card> beside;  ///< on the same switch, without itself
    bool operator==(const neighbours&) const = default;

    /// "PCIe switch 0000:11:00.0 with GPU at 0000:15:00, mlx5_0; NUMA node 0"; may be empty.
    std::string text() const;
};

nlohmann::json to_json(const neighbours& n);
result<neighbours> neighbours_from(const nlohmann::json& in);

}  // namespace banyan::fault
