// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/missing_switches.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "topo/model/names.hpp"

namespace banyan::topo::build {
namespace {

using ports = missing_ports::ports;

constexpr std::size_t most_kinds = 64;  ///< of rows: each is compared with all

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

std::vector<std::uint32_t> sorted_once(std::vector<std::uint32_t> v) {
    std::sort(v.begin(), v.end());
    v.erase(std::unique(v.begin(), v.end()), v.end());
    return v;
}

}  // namespace

missing_switches::missing_switches(state& s, missing_ports& all)
    : s_(s), ports_(all), region_(s.out.switches.size(), none), rail_(s.out.switches.size(), none) {
    const auto& f = s.out;
    for (const auto& g : f.leaf_groups) {
        for (std::size_t i = 0; i < g.leaves.size(); ++i) {
            region_[g.leaves[i]] = regions_;
            rail_[g.leaves[i]] = static_cast<std::uint32_t>(rail_at(g, i));
        }
        ++regions_;
    }
    for (std::uint32_t i = 0; i < region_.size(); ++i)
        region_[i] = region_[f.switches[i].box], rail_[i] = rail_[f.switches[i].box];
    for (const auto& sw : f.switches)
        if (sw.level != UINT8_MAX) taken_.emplace(short_switch_name(sw.name), sw.plane);
}

missing_switches::row missing_switches::row_of(const mesh& m, const block& uppers,
                                               const std::vector<std::uint32_t>& lowers) {
    row out;
    if (lowers.size() < 2) return out;
    std::vector<std::pair<ports, std::uint32_t>> order;
    std::vector<std::uint32_t> all;
    for (const auto upper : uppers) {
        order.emplace_back(ports_.usual_at_peers(m.uppers[upper], s_.out.switches[lowers[0]].level),
                           m.uppers[upper]);
        if (order.back().first.empty()) return out;
        all.insert(all.end(), order.back().first.begin(), order.back().first.end());
    }
    if (const auto count = all.size(); sorted_once(std::move(all)).size() < count) return out;
    std::sort(order.begin(), order.end());
    for (auto& [at, upper] : order) out.at.push_back(std::move(at)), out.uppers.push_back(upper);
    for (const auto low : lowers) {
        std::size_t as_usual = 0;
        for (std::size_t i = 0; i < out.at.size(); ++i)
            as_usual += ports_.leads_to(low, out.at[i].front(), out.uppers[i]);
        if (2 * as_usual < out.at.size() || as_usual == 0) continue;
        out.lowers.push_back(low);
        if (region_[low] != none) out.regions.push_back(region_[low]);
    }
    out.regions = sorted_once(std::move(out.regions));
    return out;
}

/// But for a few that may have got something else there.
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
    // Who has the name is there, somewhere else.
    if (!out.name.empty() && taken_.contains({out.name, s_.out.switches[r.uppers[0]].plane}))
        out = {"", out.shows > 0 ? -1 : 0};
    return out;
}

/// What most rows like it have beside: rows of other rails, which are to be the same, or of other groups of
/// hosts, which may have been built smaller; then the hole must not be the end of the row, or be one above
/// too.
std::vector<missing_switches::hole> missing_switches::against_like(const like_rows& all,
                                                                   const std::vector<row>& rows,
                                                                   const row& r) {
    const std::vector<ports>* whole = nullptr;
    std::size_t count = 1;
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
        return h.name.shows < 0 || !dark_on_all(r, h.dark) ||
               !(inside || rails >= 2 || (holes == 1 && is_hole_above(r, rows, h)));
    });
    return out;
}

/// What its own step leaves out: between two of its uppers, or in as many ports as one has before the first.
std::vector<missing_switches::hole> missing_switches::against_step(const row& r) const {
    if (r.at.size() < 3) return {};
    const auto first = [&](std::size_t i) { return long{r.at[i].front()}; };
    long step = first(1) - first(0);
    for (std::size_t i = 0; i < r.at.size(); ++i) {
        if (r.at[i] != moved_to(r.at[0], first(i))) return {};
        if (i > 0) step = std::min(step, first(i) - first(i - 1));
    }
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
    if (2 * holes > r.at.size()) return {};
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

void missing_switches::find(const mesh& m, const std::vector<block>& blocks,
                            const std::vector<std::vector<std::uint32_t>>& lowers) {
    std::vector<row> rows;
    for (std::size_t b = 0; b < blocks.size(); ++b) rows.push_back(row_of(m, blocks[b], lowers[b]));
    like_rows like;
    for (const auto& r : rows)
        if (!r.at.empty() && !r.regions.empty()) like[r.at].push_back(&r);
    std::erase_if(like, [](const auto& each) { return each.second.size() < 2; });
    // Of so many kinds none is usual.
    if (like.size() > most_kinds) like.clear();
    for (const auto& r : rows) {
        if (r.at.empty()) continue;
        auto holes = against_like(like, rows, r);
        if (holes.empty()) holes = against_step(r);
        for (const auto& h : holes) take(r, rows, h, holes.size());
    }
    for (std::size_t b = 0; b < blocks.size(); ++b, ++regions_) {
        std::vector<std::uint32_t> rails;
        for (const auto low : rows[b].lowers)
            if (rail_[low] != none) rails.push_back(rail_[low]);
        rails = sorted_once(std::move(rails));
        for (const auto upper : blocks[b]) {
            if (!rows[b].regions.empty()) region_[m.uppers[upper]] = regions_;
            if (rails.size() == 1) rail_[m.uppers[upper]] = rails[0];
        }
    }
}

}  // namespace banyan::topo::build
