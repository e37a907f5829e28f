// SPDX-License-Identifier: BSD-3-Clause
//
// The mesh between two levels of switches: in a tree, every lower switch has the same number of links to
// every upper one of its block. Missing links are laid to the one switch that explains most of them.
#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "topo/counted.hpp"
#include "topo/model/build.hpp"
#include "topo/model/mesh.hpp"
#include "topo/model/missing_ports.hpp"
#include "topo/model/missing_switches.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {
namespace {

constexpr std::size_t peers_named = 8;  ///< in the evidence; `where` has them all

struct gap {
    std::uint32_t low, high, missing;
};

/// Lays gaps to switches, the one that explains most first; a lower one where both do, since one leaf's
/// cables fail more easily.
class culprits {
  public:
    culprits(const state& s, const std::vector<gap>& gaps) : gaps_(gaps), explained_(gaps.size()) {
        for (std::size_t i = 0; i < gaps.size(); ++i) {
            of_low_[gaps[i].low].push_back(i);
            of_high_[gaps[i].high].push_back(i);
        }
        left_.resize(s.out.switches.size());
        for (const auto& [sw, list] : of_low_) left_[sw] = list.size();
        for (const auto& [sw, list] : of_high_) left_[sw] = list.size();
    }

    struct culprit {
        std::uint32_t sw = none;
        bool upper = false;
        std::vector<gap> gaps;
    };
    /// None when all are explained.
    std::optional<culprit> next() {
        const auto low = most(of_low_), high = most(of_high_);
        if (low == none) return {};
        culprit out;
        out.upper = left_[high] > left_[low];
        out.sw = out.upper ? high : low;
        for (const auto i : out.upper ? of_high_[high] : of_low_[low]) {
            if (explained_[i]) continue;
            explained_[i] = true;
            --left_[gaps_[i].low];
            --left_[gaps_[i].high];
            out.gaps.push_back(gaps_[i]);
        }
        return out;
    }

  private:
    using by_switch = std::map<std::uint32_t, std::vector<std::size_t>>;
    std::uint32_t most(const by_switch& all) const {
        std::uint32_t out = none;
        for (const auto& [sw, list] : all)
            if (left_[sw] > (out == none ? 0 : left_[out])) out = sw;
        return out;
    }

    const std::vector<gap>& gaps_;
    std::vector<bool> explained_;
    by_switch of_low_, of_high_;
    std::vector<std::size_t> left_;  ///< by switch: gaps that nothing explains yet
};

std::string port_text(const fabric& f, std::uint32_t sw, std::uint16_t port) {
    return port == 0 ? hex(f.switches[sw].id) : port_id(f.switches[sw].id, port);
}

/// What each switch of a block should have.
struct expected_links {
    std::size_t lowers, uppers;  ///< of the block
    std::uint32_t links;         ///< of each pair
    std::size_t of(bool upper) const { return std::size_t{links} * (upper ? lowers : uppers); }
};

void report_gaps(state& s, const std::vector<gap>& gaps, const expected_links& expected,
                 missing_ports& ports) {
    const auto& f = s.out;
    culprits all(s, gaps);
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
        s.report(c->upper ? "asymmetric-spine" : "missing-uplink", {label(s, c->sw)},
                 fmt::format("{} of {} missing, to {}", missing, counted(expected.of(c->upper), "link"), to),
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
bool may_be_full(const mesh& m, const block& uppers, std::size_t lowers) {
    std::size_t edges = 0;
    for (const auto upper : uppers) edges += m.edges_of(upper).size();
    return static_cast<double>(edges) >= least_share * static_cast<double>(uppers.size() * lowers);
}

void check_block(state& s, const mesh& m, const block& uppers, const std::vector<std::uint32_t>& lowers,
                 missing_ports& ports) {
    if (uppers.size() * lowers.size() < 4) return;  // too small to show what is usual
    if (!may_be_full(m, uppers, lowers.size())) return;
    std::vector<std::uint32_t> all;
    all.reserve(uppers.size() * lowers.size());
    each_pair(m, uppers, lowers,
              [&](std::uint32_t, std::uint32_t, std::uint32_t links) { all.push_back(links); });
    const auto expected = usual(std::move(all));
    // No full mesh: nothing to compare with.
    if (expected.value == 0 || expected.share() < least_share) return;
    if (expected.have == expected.of) return;
    std::vector<gap> gaps;
    each_pair(m, uppers, lowers, [&](std::uint32_t high, std::uint32_t low, std::uint32_t links) {
        if (links < expected.value) gaps.push_back({low, high, expected.value - links});
    });
    report_gaps(s, gaps, {lowers.size(), uppers.size(), expected.value}, ports);
}

}  // namespace

void find_missing_links(state& s) {
    missing_ports ports(s.out);
    missing_switches gone(s, ports);
    for (const auto& m : meshes_of(s.out)) {
        const auto blocks = blocks_of(m);
        const auto lowers = lowers_of_blocks(m, blocks);
        gone.find(m, blocks, lowers);
        std::vector<bool> linked(s.out.switches.size());
        for (std::size_t b = 0; b < blocks.size(); ++b) {
            check_block(s, m, blocks[b], lowers[b], ports);
            for (const auto low : lowers[b]) linked[low] = true;
        }
        for (const auto low : m.all_lowers)
            if (!linked[low] && !m.uppers.empty() && s.out.switches[low].level == 0)
                s.report("missing-uplink", {label(s, low)}, "no link leads up from it, as from its like", 0.9,
                         {hex(s.out.switches[low].id)});
    }
    gone.report();
}

}  // namespace banyan::topo::build
