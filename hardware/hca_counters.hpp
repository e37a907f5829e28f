// SPDX-License-Identifier: BSD-3-Clause
//
// The error counters of the HCAs' ports: /sys/class/infiniband/DEVICE/ports/N/counters and hw_counters. A
// read asks the card's firmware and may hang with it: not from an io_context, best from a process of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/result.hpp"

namespace banyan::hardware {

struct port_counters {
    std::string device, port;                       ///< "mlx5_0", "1"
    std::string bdf{};                              ///< "0000:3b:00.0"; empty where the device shows none
    std::map<std::string, std::uint64_t> values{};  ///< of the counters that were asked for and can be read
    std::map<std::string, std::string> unread{};    ///< of the others: why. "" stands for the whole port

    std::string name() const { return device + " port " + port; }
};

/// The counters of these names, of every port; a name that is in neither folder is one that cannot be read.
/// Fails where /sys itself is not there. `root`: where sys/ is.
result<std::vector<port_counters>> read_counters(const std::filesystem::path& root,
                                                 std::span<const std::string> names);

// What one process writes and another reads.
nlohmann::json to_json(const std::vector<port_counters>& ports);
result<std::vector<port_counters>> counters_from(const nlohmann::json& told);

}  // namespace banyan::hardware
