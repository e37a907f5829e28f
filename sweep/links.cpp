// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/links.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::sweep {
namespace {

constexpr std::size_t most_flaws = 16;

/// The "4" of "4: ACTIVE".
std::string_view number_of(std::string_view state) { return state.substr(0, state.find(':')); }
std::string_view word_of(std::string_view state) {
    const auto colon = state.find(':');
    return trim(colon == std::string_view::npos ? state : state.substr(colon + 1));
}

/// The 400 of "400 Gb/sec (4X NDR)".
double gbits(std::string_view rate) {
    double out = 0;
    if (rate.empty() || rate.front() < '0' || rate.front() > '9')
        return 0;  // "nan" and "inf" are numbers, too
    std::from_chars(rate.data(), rate.data() + rate.size(), out);
    return out;
}

/// What keeps a port that could be read from counting; empty for one that counts.
std::string flaw_of(const hca_port& p, std::uint32_t rate) {
    if (number_of(p.state) != "4" || number_of(p.phys_state) != "5")
        return fmt::format("{} is {}, {}", p.name(), word_of(p.state), word_of(p.phys_state));
    if (gbits(p.rate) < rate) return fmt::format("{} runs at {}, expected {} Gb/s", p.name(), p.rate, rate);
    return {};
}

}  // namespace

finding judge_ports(const std::vector<hca_port>& ports, std::uint32_t wanted, std::uint32_t rate) {
    std::size_t active = 0, unread = 0, ethernet = 0;
    std::vector<std::string> flaws;
    for (const auto& p : ports) {
        if (!p.layer.empty() && p.layer != "InfiniBand") {
            ++ethernet;
        } else if (!p.error.empty()) {
            ++unread;
            flaws.push_back(fmt::format("{} could not be read: {}", p.name(), p.error));
        } else if (auto flaw = flaw_of(p, rate); !flaw.empty()) {
            flaws.push_back(std::move(flaw));
        } else {
            ++active;
        }
    }
    finding out;
    out.is = active >= wanted ? verdict::fit : active + unread >= wanted ? verdict::unknown : verdict::unfit;
    out.what.push_back(fmt::format("{} InfiniBand port{} active{}, expected {}", active,
                                   active == 1 ? " is" : "s are",
                                   rate > 0 ? fmt::format(" with {} Gb/s or more", rate) : "", wanted));
    if (ethernet > 0)
        out.what.push_back(
            fmt::format("{} Ethernet port{} not count", ethernet, ethernet == 1 ? " does" : "s do"));
    const auto told = std::min(flaws.size(), most_flaws);
    out.what.insert(out.what.end(), flaws.begin(), flaws.begin() + static_cast<std::ptrdiff_t>(told));
    if (flaws.size() > told) out.what.push_back(fmt::format("and {} more", flaws.size() - told));
    out.figures["links_active"] = static_cast<double>(active);
    return out;
}

}  // namespace banyan::sweep
