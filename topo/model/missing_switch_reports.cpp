// SPDX-License-Identifier: BSD-3-Clause
//
// What is known of a switch that is not there: the cables that it had, and where it stood.
#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "topo/counted.hpp"
#include "topo/model/missing_switches.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {
namespace {

using ports = missing_ports::ports;

std::string text_of(const ports& p) {
    if (p.size() == 1) return fmt::format("port {} is", p.front());
    if (p.back() - p.front() + 1u == p.size()) return fmt::format("ports {}-{} are", p.front(), p.back());
    std::string out = "ports ";
    for (std::size_t i = 0; i < p.size(); ++i) out += fmt::format("{}{}", i > 0 ? ", " : "", p[i]);
    return out + " are";
}

/// What kind of switch stands there, one or several.
std::string kind_of(unsigned level, std::size_t count) {
    return level == 0   ? counted(count, "leaf", "leaves")
           : level == 1 ? counted(count, "spine")
                        : counted(count, "core");
}

}  // namespace

/// "rail 2", where all below is of one rail and there are others.
std::string missing_switches::rail_of(const row& r) const {
    const auto rail = rail_[r.lowers.front()];
    const auto& groups = s_.out.leaf_groups;
    const bool several =
        std::any_of(groups.begin(), groups.end(), [](auto& g) { return g.leaves.size() > 1; });
    const bool one =
        std::all_of(r.lowers.begin(), r.lowers.end(), [&](auto low) { return rail_[low] == rail; });
    return rail != none && several && one ? fmt::format("rail {}", rail) : "";
}

/// It had as many links up as its siblings, and on the switches above them the ports that continue theirs;
/// or, where each has switches of its own above, those of its like elsewhere.
missing_switches::ends_above missing_switches::above(const row& r, const std::vector<row>& rows,
                                                     const hole& h) {
    ends_above out;
    const auto level = s_.out.switches[r.uppers.front()].level + 1u;
    std::vector<std::size_t> counts;
    std::vector<long> first;
    std::vector<std::uint32_t> switches;
    const auto visit = [&](std::uint32_t upper) {
        std::size_t count = 0;
        for (const auto& e : ports_.ends_of(upper))
            if (s_.out.switches[e.peer].level == level) switches.push_back(e.peer), ++count;
        return count;
    };
    for (const auto upper : r.uppers) {
        counts.push_back(visit(upper));
        const auto& p = ports_.usual_at_peers(upper, level);
        first.push_back(p.empty() ? 0 : p.front());
    }
    out.first = usual(std::move(counts)).value;
    if (out.first == 0) return out;
    constexpr std::size_t most_rows = 1000;  // of a fabric that is regular enough to tell
    for (const auto& other : std::span(rows).first(std::min(rows.size(), most_rows)))
        for (std::size_t i = 0; i < other.at.size(); ++i)
            if (&other != &r && other.at[i] == h.dark) visit(other.uppers[i]);
    std::ranges::sort(switches);
    switches.erase(std::unique(switches.begin(), switches.end()), switches.end());
    const auto& shape = ports_.usual_at_peers(r.uppers.front(), level);
    if (r.uppers.size() < 2 || shape.empty()) return out;
    const auto step = (first[1] - first[0]) / (h.places[1] - h.places[0]);
    for (std::size_t i = 1; i < first.size(); ++i)
        if (first[i] != first[0] + step * (h.places[i] - h.places[0])) return out;
    const auto shift = step * (h.at - h.places[0]);
    for (const auto sw : switches)
        for (const auto port : shape)
            if (const auto p = port + shift;
                p > 0 && p <= UINT16_MAX && ports_.dark(sw, static_cast<std::uint16_t>(p)))
                out.second.emplace_back(sw, static_cast<std::uint16_t>(p));
    if (out.second.size() != out.first) out.second.clear();
    return out;
}

/// Whether those ports are between others that are used, on each switch above.
bool missing_switches::is_hole_above(const row& r, const std::vector<row>& rows, const hole& h) {
    const auto ends = above(r, rows, h).second;
    return !ends.empty() && std::ranges::all_of(ends, [&](const auto& e) {
        return std::ranges::any_of(ports_.ends_of(e.first),
                                   [&](const auto& other) { return other.port > e.second; });
    });
}

void missing_switches::take(const row& r, const std::vector<row>& rows, const hole& h, std::size_t holes) {
    finding out;
    out.dark = h.dark;
    out.name = h.name.name;
    out.rail = rail_of(r);
    out.confidence = h.confidence;
    for (const auto& p : r.at) out.has += p.size();
    out.of = out.has + holes * h.dark.size();
    for (const auto low : r.lowers) {
        if (!std::all_of(h.dark.begin(), h.dark.end(), [&](auto p) { return ports_.dark(low, p); })) continue;
        out.lowers.push_back(low);
        for (const auto p : h.dark) out.where.push_back(port_id(s_.out.switches[low].id, p));
    }
    out.below = out.where.size();
    const auto [count, ends] = above(r, rows, h);
    out.above = count;
    for (const auto& [sw, port] : ends) out.where.push_back(port_id(s_.out.switches[sw].id, port));
    // The planes of one box are dark on the same boxes.
    const auto box = [&](auto sw) { return s_.out.switches[sw].box; };
    std::ranges::sort(out.lowers, {}, box);
    out.planes = {s_.out.switches[out.lowers.front()].plane};
    for (auto& f : found_) {
        const bool same = f.dark == out.dark && std::ranges::equal(f.lowers, out.lowers, {}, box, box) &&
                          f.lowers.front() != out.lowers.front();
        if (!same) continue;
        f.planes.push_back(out.planes.front());
        f.below += out.below;
        f.above += out.above;
        std::move(out.where.begin(), out.where.end(), std::back_inserter(f.where));
        return;
    }
    found_.push_back(std::move(out));
}

void missing_switches::tell(const finding& all, bool whole_box) {
    const unsigned level = s_.out.switches[all.lowers.front()].level;
    auto object = all.name;
    if (object.empty())
        object = fmt::format("a {}{}",
                             level == 0   ? "spine"
                             : level == 1 ? "core"
                                          : "switch above the cores",
                             all.rail.empty() ? "" : " of " + all.rail);
    if (!whole_box) object += fmt::format(" U{}", all.planes.front() + 1);
    const auto above = all.above > 0 ? fmt::format(" and {} up from it", all.above) : "";
    s_.report("missing-switch", {object},
              fmt::format("{}{} have {} of {} links up, {} dark on all: what they led to is not there; {}{}",
                          all.rail.empty() ? "" : all.rail + ": ", kind_of(level, all.lowers.size()), all.has,
                          all.of, text_of(all.dark), counted(all.below, "cable"), above),
              all.confidence, all.where);
}

void missing_switches::report() {
    std::vector<std::size_t> planes(s_.out.switches.size());
    for (const auto& sw : s_.out.switches) ++planes[sw.box];
    for (const auto& f : found_) tell(f, planes[s_.out.switches[f.lowers.front()].box] == f.planes.size());
    found_.clear();
}

}  // namespace banyan::topo::build
