// SPDX-License-Identifier: BSD-3-Clause
//
// Which GPU sits at which PCI address: read from <root>/proc/driver/nvidia/gpus/<bdf>/information, completed
// by what the kernel log tells.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "fault/sources/kernel_fault.hpp"

namespace banyan::fault {

struct gpu_place {
    int minor = -1;  ///< as in /dev/nvidiaN; -1 when not known
    std::string uuid, model, serial;
};

class gpu_map {
  public:
    /// Reads anew; keeps what it knew about a card that no longer shows (a lost one leaves /proc).
    void refresh(const std::filesystem::path& root);
    void learn(const gpu_identity& told);
    const gpu_place* find(const std::string& bdf) const;
    std::size_t size() const { return places_.size(); }

  private:
    std::map<std::string, gpu_place> places_;
};

/// Of the driver that is loaded, such as 570, by <root>/proc/driver/nvidia/version; 0: not known.
std::uint32_t driver_branch(const std::filesystem::path& root);

}  // namespace banyan::fault
