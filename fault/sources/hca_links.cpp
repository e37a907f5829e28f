// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/hca_links.hpp"

#include <algorithm>

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
    auto out = symptom_at(code, e.bdf, e.device, fmt::format("HCA {}{}: {}", e.device, of, words));
    if (e.port != 0) out.port = printable(fmt::format("{} {}", e.device, e.port));
    return out;
}

}  // namespace

std::optional<kernel_fault> hca_links::after(const hardware::hca_event& e) {
    if (e.news == hca_news::device_fatal)
        return fault_of(e, symptom::hca_health, "its driver says that the device failed");
    if (links_.size() >= most_links) links_.clear();
    const key port(e.device, e.port);
    auto& known = links_[port];
    const auto card = symptom_at(symptom::hca_port_up, e.bdf, e.device, {}).device;
    // Devices are numbered anew when a node starts: what was known under that name is of another card.
    if (!known.card.empty() && known.card != card) {
        if (known.lost) expected_.insert(known.card);
        known = {};
    }
    known.card = card;
    known.heard = true;
    const auto before = known.is;
    const bool up = e.news == hca_news::is_up || e.news == hca_news::port_up;
    known.is = up ? state::up : state::down;
    known.bdf = e.bdf;
    if (up) {
        const bool again = std::exchange(known.lost, false);
        return again || expected_.contains(known.card) ? returned(port, known) : std::nullopt;
    }
    auto out = fault_of(
        e, symptom::hca_port_down,
        e.news == hca_news::is_down ? "the link went down while nobody listened" : "the link went down");
    // At the first look at it a port may be one without a cable.
    if (e.news == hca_news::is_down && before != state::up) return {};
    known.told = true;
    if (std::exchange(known.lost, true)) return {};
    return out;
}

/// The card is well when all its ports are that were lost.
std::optional<kernel_fault> hca_links::returned(const key& port, const link& of) {
    for (const auto& [other, its] : links_)
        if (its.lost && its.card == of.card) return {};
    if (expected_.contains(of.card) && !is_well(of.card)) return {};
    expected_.erase(of.card);
    return fault_of({port.first, of.bdf, port.second, hca_news::is_up}, symptom::hca_port_up,
                    "the link is up again");
}

/// As far as all of it was seen.
bool hca_links::is_well(const std::string& card) const {
    bool any = false;
    for (const auto& [port, its] : links_) {
        if (its.card != card) continue;
        if (its.is != state::up || !its.heard) return false;
        any = true;
    }
    return any && looked_;
}

/// That a card of which it is not known which port was lost is back.
std::optional<kernel_fault> hca_links::if_back(const std::string& card) {
    if (!expected_.contains(card)) return {};
    for (const auto& [port, its] : links_)
        if (its.card == card && its.heard) return returned(port, its);
    return {};
}

bool hca_links::told_of(const std::string& card) const {
    return std::ranges::any_of(links_,
                               [&](const auto& one) { return one.second.card == card && one.second.told; });
}

std::optional<kernel_fault> hca_links::expect(const std::string& card,
                                              const std::vector<std::string>& ports) {
    if (ports.empty()) {
        if (told_of(card)) return {};
        expected_.insert(card);
    }
    std::optional<key> back;
    for (const auto& name : ports) {
        const auto end = name.rfind(' ');
        if (end == std::string::npos || links_.size() >= most_links) continue;
        const auto number = parse_number(name.substr(end + 1), UINT32_MAX);
        if (!number) continue;
        const key port(name.substr(0, end), static_cast<std::uint32_t>(*number));
        if (const auto found = links_.find(port);
            found != links_.end() && !found->second.card.empty() && found->second.card != card) {
            // The name is another card's now.
            if (!told_of(card)) expected_.insert(card);
            continue;
        }
        auto& its = links_[port];
        if (std::exchange(its.told, true)) continue;
        its.card = card;
        its.lost = its.is != state::up || !its.heard;
        if (!its.lost) back = port;
    }
    if (back) return returned(*back, links_[*back]);
    return if_back(card);
}

void hca_links::nobody_listens() {
    looked_ = false;
    for (auto& [port, its] : links_) its.heard = false;
}

/// Names that no device has, after all were looked at: what was lost under them is the card's.
void hca_links::drop_other_names() {
    std::set<std::string> places;
    for (const auto& [port, its] : links_)
        if (its.heard && !its.bdf.empty()) places.insert(its.bdf);
    std::erase_if(links_, [&](const auto& one) {
        const auto& its = one.second;
        if (its.heard || (its.is != state::unknown && !places.contains(its.bdf))) return false;
        if (its.lost) expected_.insert(its.card);
        return true;
    });
}

std::vector<kernel_fault> hca_links::after_look(bool all) {
    looked_ = all;
    if (all) drop_other_names();
    std::vector<kernel_fault> out;
    const auto cards = expected_;
    for (const auto& card : cards)
        if (auto fault = if_back(card)) out.push_back(std::move(*fault));
    return out;
}

}  // namespace banyan::fault
