// SPDX-License-Identifier: BSD-3-Clause
#include "fault/incident/incident.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::fault {

std::string object::text() const {
    const auto end = [](const end_point& e) { return fmt::format("{} port {}", e.node, e.port); };
    switch (kind) {
        case object_kind::gpu:
            return gpu >= 0 ? fmt::format("{} GPU {} ({})", node, gpu, bdf)
                            : fmt::format("{} GPU at {}", node, bdf);
        case object_kind::hca:
            return ends.size() > 1 ? fmt::format("{} {} ({})", node, hca, end(ends[1]))
                                   : fmt::format("{} {}", node, hca.empty() ? device : hca);
        case object_kind::link:
            return ends.size() > 1    ? fmt::format("{} <-> {}", end(ends[0]), end(ends[1]))
                   : ends.size() == 1 ? "link of " + ends[0].name
                                      : "a link";
        case object_kind::sw:
            if (!device.empty()) return device;
            return bdf.empty() ? fmt::format("switch {}", node) : fmt::format("{} NVSwitch {}", node, bdf);
        case object_kind::node:
            return device.empty() ? node : fmt::format("{} {}", node, device);
        case object_kind::manager:
            return node.empty() ? "the subnet manager" : "subnet manager " + node;
    }
    return node;
}

bool is_an_nvlink_domain(const incident& i) {
    return i.object.kind == object_kind::sw && i.reason == nvlink_domain_reason;
}

std::string incident::id() const { return fmt::format("f{:05d}", number); }

std::int64_t newest_line_ms(const incident& i) {
    if (i.written_ms != 0) return i.written_ms;
    return i.seen.empty() ? i.line_ms : std::max(i.line_ms, i.seen.back());
}

std::optional<std::uint64_t> number_of(std::string_view id) {
    if (id.starts_with('f')) id.remove_prefix(1);
    const auto n = parse_number(id, INT64_MAX);
    return n ? std::optional(*n) : std::nullopt;
}

void incident::add_evidence(evidence_line line) {
    ++lines;
    lines += line.repeats;
    // Each node of an NVLink domain has room for a line of its own.
    if (evidence.size() >= max_evidence + shown.size()) {
        // The newest of each source is kept, among those that decide nothing.
        const auto least = std::ranges::find_if(evidence.rbegin(), evidence.rend(), [&](const auto& l) {
            return !l.decides && (line.decides || l.source == line.source);
        });
        if (least == evidence.rend()) return;
        evidence.erase(std::prev(least.base()));
    }
    evidence.push_back(std::move(line));
}

// What was done is known from them, so as not to be done twice.
void incident::add_action(action_record a, bool done) {
    if (!done && actions.size() >= max_actions) {
        // The newest of what holds it back is asked for again and again.
        constexpr std::string_view held = "held back: ";
        if (!a.result.starts_with(held)) return;
        const auto last = std::ranges::find_if(actions.rbegin(), actions.rend(), [&](const auto& old) {
            return old.what == a.what && old.target == a.target && old.result.starts_with(held);
        });
        if (last != actions.rend()) actions.erase(std::prev(last.base()));
    }
    actions.push_back(std::move(a));
}

void incident::add_seen(std::int64_t at_ms, std::int64_t window_ms) {
    if (!seen.empty() && at_ms - seen.back() <= window_ms) return;
    if (seen.size() >= max_seen) seen.erase(seen.begin());
    seen.push_back(at_ms);
}

std::string ranges_text(const std::vector<std::uint32_t>& numbers) {
    std::string out;
    for (std::size_t from = 0; from < numbers.size();) {
        auto last = from;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
        out += fmt::format("{}{}", out.empty() ? "" : ",", numbers[from]);
        if (last > from) out += fmt::format("-{}", numbers[last]);
        from = last + 1;
    }
    return out;
}

const action_record* incident::find_action(const std::string& what, const std::string& target) const {
    const auto it =
        std::ranges::find_if(actions, [&](const auto& a) { return a.what == what && a.target == target; });
    return it == actions.end() ? nullptr : &*it;
}

namespace {
constexpr std::array<std::string_view, 6> kinds{"gpu", "hca", "link", "switch", "node", "manager"};
constexpr std::array<std::string_view, 4> severities{"notice", "warning", "error", "fatal"};
constexpr std::array<std::string_view, 4> states{"open", "acting", "done", "held"};
constexpr std::array<std::string_view, 4> link_ends{"none", "peer", "unclear", "own"};
}  // namespace

std::string_view name_of(object_kind k) { return kinds[static_cast<std::size_t>(k)]; }
std::string_view name_of(severity s) { return severities[static_cast<std::size_t>(s)]; }
std::string_view name_of(incident_state s) { return states[static_cast<std::size_t>(s)]; }
std::string_view name_of(link_end e) { return link_ends[static_cast<std::size_t>(e)]; }

}  // namespace banyan::fault
