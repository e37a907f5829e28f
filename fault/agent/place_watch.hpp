// SPDX-License-Identifier: BSD-3-Clause
//
// The agent's look at where the node's GPUs and HCAs are, by libhwloc: once, and again where it could not be
// done. Who hangs on which PCIe switch changes with the machine alone.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "fault/agent/look.hpp"
#include "fault/agent/sight.hpp"
#include "fault/config.hpp"
#include "fault/neighbours.hpp"
#include "hardware/pci_places.hpp"

namespace banyan::fault {

class place_watch {
  public:
    /// `settings` must outlive it.
    place_watch(asio::io_context& io, const config& settings, std::shared_ptr<metrics> counters);
    /// Looks in `io`, until it is known.
    void start();

    /// Of a card, as kernel_fault names it; none where it is not known.
    std::optional<neighbours> of(const std::string& bdf) const;

    /// What a look told; the watch itself calls it. Whether it could be done.
    bool after_look(const result<nlohmann::json>& told);
    const std::set<std::string>& blind() const { return sight_.blind(); }
    const std::vector<hardware::pci_place>& places() const { return places_; }

  private:
    task<void> run();

    asio::io_context& io_;
    look look_;
    sight sight_;
    std::vector<hardware::pci_place> places_;
};

}  // namespace banyan::fault
