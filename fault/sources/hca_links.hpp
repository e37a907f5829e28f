// SPDX-License-Identifier: BSD-3-Clause
//
// From what the HCAs tell to faults, named as the kernel's mlx5 lines name them. Knows which ports are up, so
// that what happened while nobody listened is found, and that each loss and return is told once. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "fault/sources/kernel_fault.hpp"
#include "hardware/verbs.hpp"

namespace banyan::fault {

class hca_links {
  public:
    /// Nothing where it is no news: a port that was never up is not lost.
    std::optional<kernel_fault> after(const hardware::hca_event& e);

  private:
    enum class state : std::uint8_t { unknown, up, down };
    struct link {
        enum state is = state::unknown;
        bool lost = false;  ///< it was told
        std::string card;   ///< which functions have in common: an incident is of the card
    };
    std::map<std::pair<std::string, std::uint32_t>, link> links_;
};

}  // namespace banyan::fault
