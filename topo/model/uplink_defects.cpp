// SPDX-License-Identifier: BSD-3-Clause
//
// The mesh between two levels of switches: in a tree, every lower switch has the same number of links to
// every upper one of its block. Missing links are laid to the one switch that explains most of them.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "topo/counted.hpp"
#include "topo/model/build.hpp"
#include "topo/model/culprits.hpp"
#include "topo/model/like_switches.hpp"
#include "topo/model/mesh.hpp"
#include "topo/model/missing_ports.hpp"
#include "topo/model/missing_switches.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {
namespace {

constexpr std::size_t peers_named = 8;  ///< in the evidence; `where` has them all

std::string port_text(const fabric& f, std::uint32_t sw, std::uint16_t port) {
    return port == 0 ? hex(f.switches[sw].id) : port_id(f.switches[sw].id, port);
}

/// What the switches of a block should have.
struct expected_links {
    std::size_t uppers = 0;
    std::map<std::uint32_t, std::uint32_t> links;  ///< by lower: to each upper
    std::size_t below = 0;                         ///< of each upper
};

void report_gaps(state& s, const std::vector<gap>& gaps, const expected_links& expected,
                 missing_ports& ports) {
    const auto& f = s.out;
    culprits all(f.switches.size(), gaps);
    while (const auto c = all.next()) {
        std::uint32_t missing = 0;
        std::vector<std::string> where{hex(f.switches[c->sw].id)};
        std::string to;
        for (std::size_t i = 0; i < c->gaps.size(); ++i) {
            const auto& g = c->gaps[i];
            missing += g.missing;
            for (const auto& cable : ports.between(g.low, g.high, g.missing))
                where.push_back(fmt::format("{} to {}", port_text(f, g.low, cable.low_port),
                                            port_text(f, g.high, cable.high_port)));
            if (i < peers_named)
                to += fmt::format("{}{}{}", to.empty() ? "" : ", ", label(s, c->upper ? g.low : g.high),
                                  g.missing > 1 ? fmt::format(" ({})", g.missing) : "");
        }
        if (c->gaps.size() > peers_named)
            to +=
                fmt::format(" and {}", counted(c->gaps.size() - peers_named, "more switch", "more switches"));
        s.report(
            c->upper ? "asymmetric-spine" : "missing-uplink", {label(s, c->sw)},
            fmt::format(
                "{} of {} missing, to {}", missing,
                counted(c->upper ? expected.below : expected.uppers * expected.links.at(c->sw), "link"), to),
            0.9, std::move(where));
    }
}

/// Calls `visit(upper, lower, links)` for every pair of the block, also where there is no link.
template <class Visit>
void each_pair(const mesh& m, const block& uppers, const std::vector<std::uint32_t>& lowers, Visit visit) {
    for (const auto upper : uppers) {
        const auto edges = m.edges_of(upper);
        auto e = edges.begin();
        for (const auto low : lowers) {
            while (e != edges.end() && e->low < low) ++e;
            visit(m.uppers[upper], low, e != edges.end() && e->low == low ? e->links : 0);
        }
    }
}

constexpr double least_share = 0.6;  ///< of pairs that have the usual number of links

/// Whether so many pairs can have a link at all: not in a block that single cables hold together.
bool may_be_full(const mesh& m, const block& uppers, const std::vector<std::uint32_t>& lowers) {
    std::size_t edges = 0;
    for (const auto upper : uppers)
        for (const auto& e : m.edges_of(upper))
            edges += std::binary_search(lowers.begin(), lowers.end(), e.low);
    return static_cast<double>(edges) >= least_share * static_cast<double>(uppers.size() * lowers.size());
}

/// Compares the lowers of one kind with each other: adds what they should have, and what lacks.
void check_alike(const mesh& m, const block& uppers, const std::vector<std::uint32_t>& lowers,
                 const like_switches& like, expected_links& expected, std::vector<gap>& gaps) {
    if (uppers.size() * lowers.size() < 4) return;  // too small to show what is usual
    if (!may_be_full(m, uppers, lowers)) return;
    std::vector<std::uint32_t> all;
    all.reserve(uppers.size() * lowers.size());
    each_pair(m, uppers, lowers,
              [&](std::uint32_t, std::uint32_t, std::uint32_t links) { all.push_back(links); });
    const auto most = usual(std::move(all));
    // No full mesh: nothing to compare with.
    if (most.value == 0 || most.share() < least_share) return;
    for (const auto low : lowers) expected.links[low] = most.value;
    expected.below += lowers.size() * most.value;
    if (most.have == most.of) return;
    std::map<std::uint32_t, std::size_t> has;
    each_pair(m, uppers, lowers,
              [&](std::uint32_t, std::uint32_t low, std::uint32_t links) { has[low] += links; });
    // What all have less of, as many as each other, is how they were built.
    if (std::ranges::all_of(has, [&](auto& each) { return each.second == has.begin()->second; })) return;
    const auto by_design = [&](std::uint32_t low) {
        return like.may_have_fewer(low) && 2 * has[low] < uppers.size() * most.value;
    };
    each_pair(m, uppers, lowers, [&](std::uint32_t high, std::uint32_t low, std::uint32_t links) {
        if (links < most.value && !by_design(low)) gaps.push_back({low, high, most.value - links});
    });
}

void check_block(state& s, const mesh& m, const block& uppers, const std::vector<std::uint32_t>& lowers,
                 const like_switches& like, missing_ports& ports) {
    expected_links expected;
    expected.uppers = uppers.size();
    std::vector<gap> gaps;
    for (const auto& alike : like.divide(lowers)) check_alike(m, uppers, alike, like, expected, gaps);
    if (!gaps.empty()) report_gaps(s, gaps, expected, ports);
}

}  // namespace

void find_missing_links(state& s) {
    missing_ports ports(s.out);
    missing_switches gone(s, ports);
    like_switches like(s);
    for (const auto& m : meshes_of(s.out)) {
        const auto blocks = blocks_of(m);
        const auto lowers = lowers_of_blocks(m, blocks);
        gone.find(m, blocks, lowers);
        std::vector<bool> linked(s.out.switches.size());
        for (std::size_t b = 0; b < blocks.size(); ++b) {
            check_block(s, m, blocks[b], lowers[b], like, ports);
            for (const auto low : lowers[b]) linked[low] = true;
        }
        for (const auto low : m.all_lowers)
            if (!linked[low] && !m.uppers.empty() && s.out.switches[low].level == 0 && like.computes(low))
                s.report("missing-uplink", {label(s, low)}, "no link leads up from it, as from its like", 0.9,
                         {hex(s.out.switches[low].id)});
        like.climb(m);
    }
    gone.report();
}

}  // namespace banyan::topo::build
