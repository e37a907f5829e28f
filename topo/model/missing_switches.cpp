// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/missing_switches.hpp"

#include <algorithm>

#include "topo/model/names.hpp"

namespace banyan::topo::build {
namespace {

using ports = missing_ports::ports;

constexpr std::size_t most_kinds = 64;  ///< of rows: each is compared with all

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

void missing_switches::find(const mesh& m, const std::vector<block>& blocks,
                            const std::vector<std::vector<std::uint32_t>>& lowers) {
    std::vector<row> rows;
    for (std::size_t b = 0; b < blocks.size(); ++b) rows.push_back(row_of(m, blocks[b], lowers[b]));
    like_rows like;
    for (const auto& r : rows)
        if (!r.at.empty() && !r.regions.empty()) like[r.at].push_back(&r);
    // Of so many kinds none is usual.
    if (like.size() > most_kinds)
        std::erase_if(like, [](const auto& each) { return each.second.size() < 2; });
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
