// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/hca_rates.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::fault {
namespace {

using std::chrono::milliseconds;

// A window is kept in as many pieces at most, so that a long one takes no more memory than a short one.
constexpr int pieces = 128;

// Where the counters of a port stop, as the InfiniBand specification has them: they do not wrap.
struct counter_end {
    std::string_view name;
    std::uint64_t value;
};
constexpr std::array ends{counter_end{"symbol_error", 0xffff},
                          counter_end{"link_error_recovery", 0xff},
                          counter_end{"link_downed", 0xff},
                          counter_end{"port_rcv_errors", 0xffff},
                          counter_end{"port_rcv_remote_physical_errors", 0xffff},
                          counter_end{"port_rcv_switch_relay_errors", 0xffff},
                          counter_end{"port_xmit_discards", 0xffff},
                          counter_end{"port_xmit_constraint_errors", 0xff},
                          counter_end{"port_rcv_constraint_errors", 0xff},
                          counter_end{"local_link_integrity_errors", 0xf},
                          counter_end{"excessive_buffer_overrun_errors", 0xf},
                          counter_end{"VL15_dropped", 0xffff}};

bool at_its_end(const std::string& name, std::uint64_t value) {
    return std::ranges::any_of(ends, [&](const auto& e) { return e.name == name && e.value == value; });
}

std::string time_words(milliseconds t) {
    const auto seconds = std::chrono::duration<double>(t).count();
    if (seconds >= 3600) return fmt::format("{:.3g} h", seconds / 3600);
    return seconds >= 60 ? fmt::format("{:.3g} min", seconds / 60) : fmt::format("{:.3g} s", seconds);
}

bool is_counter_name(std::string_view text) {
    return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
}

}  // namespace

result<counter_limit> counter_limit_from(std::string_view text) {
    const auto wrong = [&] {
        return fail(
            errc::invalid_input, fmt::format("\"{}\" is no limit", printable(text.substr(0, 200))),
            "expected COUNTER:MORE_THAN/TIME, such as \"symbol_error:120/1h\", with a time from 1s to "
            "24h");
    };
    const auto colon = text.find(':'), slash = text.find('/');
    if (colon == std::string_view::npos || slash == std::string_view::npos || slash < colon) return wrong();
    const auto count = parse_number(text.substr(colon + 1, slash - colon - 1), UINT32_MAX);
    const auto within = parse_duration(text.substr(slash + 1));
    // The name becomes one of a file.
    if (!is_counter_name(text.substr(0, colon)) || !count || !within || *within < std::chrono::seconds(1) ||
        *within > std::chrono::hours(24))
        return wrong();
    return counter_limit{std::string(text.substr(0, colon)), *count, *within};
}

std::string counter_excess::text() const {
    return fmt::format("HCA {} port {}: {} rose by {} within {}, more than {} within {}", device, port,
                       limit.counter, rise, time_words(over), limit.more_than, time_words(limit.within));
}

void hca_rates::look_at(const hardware::port_counters& port, std::size_t n, std::uint64_t value,
                        clock::time_point now, outcome& out) {
    const auto& limit = limits_[n];
    auto [at, fresh] = tracks_.try_emplace({port.device, port.port, n});
    auto& t = at->second;
    if (!fresh) t.total += value >= t.shown ? value - t.shown : value;
    t.shown = value;
    if (fresh) {
        t.samples.push_back({now, 0});
        return;
    }
    while (t.samples.size() > 1 && now - t.samples.front().at > limit.within) t.samples.pop_front();
    const auto over = std::chrono::duration_cast<milliseconds>(now - t.samples.front().at);
    const auto rise = t.total - t.samples.front().total;
    // Looks that lie further apart: so much can have come without any window having too much.
    const auto windows = std::max<std::int64_t>(1, (over + limit.within - milliseconds(1)) / limit.within);
    if (rise > limit.more_than * static_cast<std::uint64_t>(windows)) {
        out.excess.push_back({port.device, port.port, port.bdf, limit, rise, over});
        t.samples.clear();
    }
    if (t.samples.empty() || now - t.samples.back().at >= limit.within / pieces)
        t.samples.push_back({now, t.total});
}

hca_rates::outcome hca_rates::after_look(std::span<const hardware::port_counters> ports,
                                         clock::time_point now) {
    outcome out;
    for (auto& [name, shown] : known_) shown = false;
    for (const auto& port : ports) {
        known_[port.name()] = true;
        if (const auto whole = port.unread.find(""); whole != port.unread.end())
            out.blind.insert(fmt::format("{}: {}", port.name(), whole->second));
        for (std::size_t n = 0; n < limits_.size(); ++n) {
            const auto& name = limits_[n].counter;
            const auto value = port.values.find(name);
            if (value == port.values.end()) {
                // What it counted meanwhile is not known: it begins anew when it is back.
                tracks_.erase({port.device, port.port, n});
                if (const auto why = port.unread.find(name); why != port.unread.end())
                    out.blind.insert(fmt::format("{}: {}: {}", port.name(), name, why->second));
                continue;
            }
            look_at(port, n, value->second, now, out);
            if (at_its_end(name, value->second))
                out.blind.insert(fmt::format("{}: {} stands at {}, where it counts no further: reset it",
                                             port.name(), name, value->second));
        }
    }
    for (const auto& [name, shown] : known_)
        if (!shown) out.blind.insert(fmt::format("{}: it is not there any more", name));
    std::erase_if(tracks_, [&](const auto& t) {
        const auto& [device, port, n] = t.first;
        return !known_[fmt::format("{} port {}", device, port)];
    });
    return out;
}

}  // namespace banyan::fault
