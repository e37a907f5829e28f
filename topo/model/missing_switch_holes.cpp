// SPDX-License-Identifier: BSD-3-Clause
//
// Where a row of switches has a hole: against the rows that are like it, and against its own step.
#include <algorithm>
#include <climits>

#include "topo/model/missing_switches.hpp"
#include "topo/model/names.hpp"

namespace banyan::topo::build {
namespace {

using ports = missing_ports::ports;

/// The same ports, counted from that first one.
ports moved_to(const ports& p, long first) {
    ports out;
    for (const auto port : p) out.push_back(static_cast<std::uint16_t>(first + port - p.front()));
    return out;
}

bool mostly_the_same(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
    std::vector<std::uint32_t> both;
    std::ranges::set_intersection(a, b, std::back_inserter(both));
    return 2 * both.size() > std::max(a.size(), b.size());
}

}  // namespace

/// Whether the ports are dark on the lowers of the row; on a few of these something else may be there.
bool missing_switches::dark_on_all(const row& r, const ports& p) const {
    std::size_t dark = 0;
    for (const auto low : r.lowers)
        dark += std::all_of(p.begin(), p.end(), [&](auto port) { return ports_.dark(low, port); });
    return dark >= 2 && 5 * dark >= 4 * r.lowers.size();
}

row_name missing_switches::name_of(const row& r, const std::vector<long>& places, long at) const {
    std::vector<std::pair<long, std::string>> names;
    for (std::size_t i = 0; i < r.uppers.size(); ++i) {
        if (s_.names.nameless(r.uppers[i])) return {};
        names.emplace_back(places[i], short_switch_name(s_.out.switches[r.uppers[i]].name));
    }
    auto out = name_in_row(names, at);
    if (out.name.empty()) return out;
    const auto is_there = [&](const std::string& name) {
        return taken_.contains({name, s_.out.switches[r.uppers[0]].plane});
    };
    // Who has the name is there, somewhere else.
    if (is_there(out.name)) return {"", out.shows > 0 ? -1 : 0};
    // The numbers may go on in another block.
    if (out.shows == 0 && is_there(name_in_row(names, at - 1).name) &&
        is_there(name_in_row(names, at + 1).name))
        out.shows = 1;
    return out;
}

/// What most rows like it have beside: rows of other rails, which are to be the same, or of other groups of
/// hosts, which may have been built smaller; then the hole must not be the end of the row, or be one above
/// too. One row alone must have the names on its side.
std::vector<missing_switches::hole> missing_switches::against_like(const like_rows& all,
                                                                   const std::vector<row>& rows,
                                                                   const row& r) {
    const std::vector<ports>* whole = nullptr;
    std::size_t count = 0;
    for (const auto& [at, like] : all)
        if (like.size() > count && at.size() > r.at.size() && 2 * (at.size() - r.at.size()) <= at.size() &&
            std::includes(at.begin(), at.end(), r.at.begin(), r.at.end()))
            whole = &at, count = like.size();
    const auto own = all.find(r.at);
    if (!whole || r.regions.empty() || (own != all.end() && own->second.size() > count)) return {};
    const auto rails = std::ranges::count_if(all.at(*whole),
                                             [&](auto* o) { return mostly_the_same(o->regions, r.regions); });
    std::vector<hole> out;
    std::vector<long> places;
    for (std::size_t i = 0; i < whole->size(); ++i)
        if (std::binary_search(r.at.begin(), r.at.end(), (*whole)[i]))
            places.push_back(static_cast<long>(i));
        else
            out.push_back({(*whole)[i], static_cast<long>(i), {}, {}, 0.9});
    const auto holes = out.size();
    std::erase_if(out, [&](hole& h) {
        h.places = places;
        h.name = name_of(r, places, h.at);
        const bool inside = h.at < places.back() || h.name.shows > 0;
        return h.name.shows < (count > 1 ? 0 : 1) || !dark_on_all(r, h.dark) ||
               !(inside || rails >= 2 || (holes == 1 && is_hole_above(r, rows, h)));
    });
    return out;
}

/// What its own step leaves out: between two of its uppers, or in as many ports as one has before the first.
std::vector<missing_switches::hole> missing_switches::against_step(const row& r) const {
    if (r.at.size() < 3) return {};
    const auto width = long{r.at[0].back()} - r.at[0].front() + 1;
    long step = LONG_MAX;
    for (std::size_t i = 1; i < r.at.size(); ++i) {
        const auto first = long{r.at[i].front()};
        if (r.at[i] != moved_to(r.at[0], first)) return {};
        step = std::min(step, first - r.at[i - 1].front());
    }
    auto out = left_out(r, step);
    // Every second one may be dead; then all must have the names on their side.
    if (out.empty() && step > width) {
        out = left_out(r, width);
        if (std::ranges::any_of(out, [](const auto& h) { return h.name.shows <= 0; })) out.clear();
    }
    return out;
}

std::vector<missing_switches::hole> missing_switches::left_out(const row& r, long step) const {
    const auto first = [&](std::size_t i) { return long{r.at[i].front()}; };
    std::vector<long> places;
    for (std::size_t i = 0; i < r.at.size(); ++i) {
        if ((first(i) - first(0)) % step != 0) return {};
        places.push_back((first(i) - first(0)) / step);
    }
    const auto holes = static_cast<std::size_t>(places.back() + 1) - places.size();
    std::vector<hole> out;
    const auto add = [&](long at) {
        hole h{moved_to(r.at[0], first(0) + at * step), at, places, name_of(r, places, at), 0.9};
        if (h.name.shows == 0) h.confidence = 0.75;
        const bool enough = h.name.shows > 0 || (h.name.shows == 0 && at > 0 && holes == 1 &&
                                                 r.at.size() >= 4 && r.lowers.size() >= 4);
        if (enough && dark_on_all(r, h.dark)) out.push_back(std::move(h));
    };
    if (holes >= r.at.size()) return {};
    for (std::size_t i = 1; i < places.size(); ++i)
        for (auto at = places[i - 1] + 1; at < places[i]; ++at) add(at);
    const auto before = first(0) - step;
    const bool next_to_used =
        before == 1 || std::any_of(r.lowers.begin(), r.lowers.end(), [&](auto low) {
            return before > 1 && !ports_.dark(low, static_cast<std::uint16_t>(before - 1));
        });
    if (holes == 0 && before > 0 && next_to_used) add(-1);
    return out;
}

}  // namespace banyan::topo::build
