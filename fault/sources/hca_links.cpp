// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/hca_links.hpp"

#include <fmt/format.h>

#include "common/text.hpp"
#include "fault/catalog/symptom.hpp"

namespace banyan::fault {

using catalog::symptom;
using hardware::hca_news;

namespace {

constexpr std::size_t most_links = 4096;

kernel_fault fault_of(const hardware::hca_event& e, symptom code, const std::string& words) {
    const auto of = e.port == 0 ? std::string() : fmt::format(" port {}", e.port);
    return symptom_at(code, e.bdf, e.device, fmt::format("HCA {}{}: {}", e.device, of, words));
}

}  // namespace

std::optional<kernel_fault> hca_links::after(const hardware::hca_event& e) {
    if (e.news == hca_news::device_fatal)
        return fault_of(e, symptom::hca_health, "its driver says that the device failed");
    if (links_.size() >= most_links) links_.clear();
    auto& known = links_[{e.device, e.port}];
    const auto before = known.is;
    const bool up = e.news == hca_news::is_up || e.news == hca_news::port_up;
    known.is = up ? state::up : state::down;
    if (up) {
        if (!std::exchange(known.lost, false)) return {};
        // The card is well when all its ports are.
        for (const auto& [port, other] : links_)
            if (other.lost && other.card == known.card) return {};
        return fault_of(e, symptom::hca_port_up, "the link is up again");
    }
    // At the first look at it a port may be one without a cable.
    if (e.news == hca_news::is_down && before != state::up) return {};
    if (std::exchange(known.lost, true)) return {};
    auto out = fault_of(
        e, symptom::hca_port_down,
        e.news == hca_news::is_down ? "the link went down while nobody listened" : "the link went down");
    known.card = out.device;
    return out;
}

}  // namespace banyan::fault
