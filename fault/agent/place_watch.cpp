// SPDX-License-Identifier: BSD-3-Clause
#include "fault/agent/place_watch.hpp"

#include <algorithm>

#include <boost/asio/detached.hpp>

#include "common/log.hpp"
#include "common/text.hpp"
#include "common/timer.hpp"

namespace banyan::fault {

place_watch::place_watch(asio::io_context& io, const config& settings, std::shared_ptr<metrics> counters)
    : io_(io),
      look_(io, {settings.look_program, "look", "pci", "--root", settings.root}, settings.look_timeout),
      sight_("PCI", std::move(counters)) {}

void place_watch::start() { asio::co_spawn(io_, run(), asio::detached); }

task<void> place_watch::run() {
    banyan::timer timer(io_);
    for (std::chrono::seconds pause(10);; pause = std::min(pause * 2, std::chrono::seconds(3600))) {
        const auto told = co_await look_.ask();
        if (after_look(told)) co_return;
        timer.expires_after(pause);
        co_await timer.async_wait(as_result);
    }
}

bool place_watch::after_look(const result<nlohmann::json>& told) {
    auto all = told ? hardware::pci_places_from(*told) : std::unexpected(told.error());
    if (!all) {
        sight_.after_look({"which GPUs and HCAs share a PCIe switch is not known: " + all.error().text()});
        return false;
    }
    sight_.after_look({});
    places_ = std::move(*all);
    const auto shared = std::ranges::count_if(places_, [](const auto& p) { return !p.pci_switch.empty(); });
    spdlog::info("{} GPUs and HCAs, {} of them share a PCIe switch with others", places_.size(), shared);
    return true;
}

std::optional<neighbours> place_watch::of(const std::string& bdf) const {
    const auto at = std::ranges::find(places_, bdf, &hardware::pci_place::bdf);
    if (bdf.empty() || at == places_.end()) return {};
    neighbours out;
    out.numa = at->numa;
    if (at->pci_switch.empty()) return out;
    out.pci_switch = printable(at->pci_switch);
    for (const auto& p : places_)
        if (p.pci_switch == at->pci_switch && p.bdf != bdf && out.beside.size() < most_neighbours)
            out.beside.push_back({p.bdf, printable(p.name)});
    return out;
}

}  // namespace banyan::fault
