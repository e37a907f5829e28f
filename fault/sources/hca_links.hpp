// SPDX-License-Identifier: BSD-3-Clause
//
// From what the HCAs tell to faults, named as the kernel's mlx5 lines name them. Knows which ports are up, so
// that what happened while nobody listened is found, and that each loss and return is told once. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fault/sources/kernel_fault.hpp"
#include "hardware/verbs.hpp"

namespace banyan::fault {

class hca_links {
  public:
    /// Nothing where it is no news: a port that was never up is not lost.
    std::optional<kernel_fault> after(const hardware::hca_event& e);
    /// From an earlier life it is known that `card` lost ports ("mlx5_0 1"); none: which is not known, and
    /// all of the card's must be up for it to be well. What this life told of itself it knows better. Their
    /// return, where they are back already.
    std::optional<kernel_fault> expect(const std::string& card, const std::vector<std::string>& ports);
    /// The state of each port that is there was told; `all`: no device was left out. What has returned of
    /// what is expected.
    std::vector<kernel_fault> after_look(bool all);
    /// What the ports are is not known until they are told again; what they were is.
    void nobody_listens();

  private:
    enum class state : std::uint8_t { unknown, up, down };
    struct link {
        enum state is = state::unknown;  ///< as it was told last
        bool heard = false;              ///< by the process that listens now
        bool lost = false;               ///< it was told
        bool told = false;               ///< it was, now or earlier, or was expected
        std::string card;                ///< which functions have in common: an incident is of the card
        std::string bdf;
    };
    using key = std::pair<std::string, std::uint32_t>;  // device, port
    std::optional<kernel_fault> returned(const key& port, const link& of);
    bool is_well(const std::string& card) const;
    std::optional<kernel_fault> if_back(const std::string& card);
    bool told_of(const std::string& card) const;
    void drop_other_names();

    std::map<key, link> links_;
    std::set<std::string> expected_;  // cards of which a port was lost that is not known
    bool looked_ = false;             // at all of them
};

}  // namespace banyan::fault
