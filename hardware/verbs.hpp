// SPDX-License-Identifier: BSD-3-Clause
//
// What the HCAs of this node tell by libibverbs' asynchronous events: a device that failed, a port that went
// down or came up. The library is loaded with dlopen: banyan is built, and runs, where there is none. Opening
// a device asks its firmware and may hang; this is for a process of its own, and for one thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/result.hpp"

namespace banyan::hardware {

/// `is_down` and `is_up`: so it was when the device was opened; the others are events.
enum class hca_news : std::uint8_t { is_down, is_up, port_down, port_up, device_fatal };

struct hca_event {
    std::string device;      ///< "mlx5_0"
    std::string bdf{};       ///< "0000:3b:00.0"; empty where the device shows none
    std::uint32_t port = 0;  ///< 0: the whole device
    hca_news news = hca_news::is_up;
};

class verbs_events {
  public:
    virtual ~verbs_events() = default;
    /// Opens devices that are new, or that failed and are back; forgets those that are gone. The state of
    /// each port of those that were opened now.
    virtual std::vector<hca_event> rescan() = 0;
    /// The events that come within `timeout`; returns with the first ones.
    virtual std::vector<hca_event> wait(std::chrono::milliseconds timeout) = 0;
    /// How many devices are open, and which are not, each as a sentence.
    virtual std::size_t devices() const = 0;
    virtual const std::set<std::string>& blind() const = 0;
};

/// `library`: as for dlopen. `root`: where sys/ is. not_found: there is no such library on this node.
result<std::unique_ptr<verbs_events>> open_verbs(const std::string& library,
                                                 const std::filesystem::path& root);

// What one process writes and another reads.
nlohmann::json to_json(const hca_event& e);
result<hca_event> hca_event_from(const nlohmann::json& told);

}  // namespace banyan::hardware
