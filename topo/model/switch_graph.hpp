// SPDX-License-Identifier: BSD-3-Clause
//
// What finding levels looks at: switches and their peers, and which switch is like another.
#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <banyan/topo/fabric.hpp>

#include "topo/model/hca_names.hpp"

namespace banyan::topo::build {

constexpr std::uint8_t no_level = UINT8_MAX;  ///< of a switch, so far
/// Of one comparison of a switch with all that share a peer with it. More than any real switch has: 256 peers
/// with 256 each. A dump may claim any mesh; there a sample of the peers must do.
constexpr std::size_t most_steps = 65536;

struct switch_graph {
    std::vector<std::vector<std::uint32_t>> peers;  ///< by switch: the switches it has a link to, ascending
    std::vector<std::size_t> hosts;                 ///< by switch: HCAs on it
    std::vector<bool> used;  ///< by switch: whether there is any, but for aggregation nodes

    switch_graph(const fabric& f, const std::vector<hca_name>& names);
    bool adjacent(std::uint32_t a, std::uint32_t b) const {
        return std::binary_search(peers[a].begin(), peers[a].end(), b);
    }
};

struct likeness {
    std::uint32_t sw = none;
    std::size_t shared = 0;  ///< peers that both have
};
class comparison {
  public:
    explicit comparison(const switch_graph& g) : g_(g), votes_(g.peers.size()) {}

    /// The switch among those that fit which has most of `mine` (peers of sw) as its own peers; reckoned from
    /// every so manyth of them where they are too many.
    template <class Fits>
    likeness nearest(std::uint32_t sw, const std::vector<std::uint32_t>& mine, Fits fits) {
        std::vector<std::uint32_t> seen;
        likeness best;
        std::size_t steps = 0, looked = 0;
        for (const auto p : mine) steps += g_.peers[p].size();
        const auto stride = steps / most_steps + 1;
        for (std::size_t i = 0; i < mine.size(); i += stride, ++looked)
            for (const auto other : g_.peers[mine[i]]) {
                if (other == sw || !fits(other)) continue;
                if (votes_[other]++ == 0) seen.push_back(other);
                if (votes_[other] > best.shared || (votes_[other] == best.shared && other < best.sw))
                    best = {other, votes_[other]};
            }
        for (const auto i : seen) votes_[i] = 0;
        if (stride > 1) best.shared = best.shared * mine.size() / looked;
        return best;
    }

  private:
    const switch_graph& g_;
    std::vector<std::size_t> votes_;
};

/// By switch: whether it is a leaf by the hosts on it.
std::vector<bool> leaves_by_hosts(const fabric& f, const switch_graph& g, const std::vector<hca_name>& names);

/// Takes from those with hosts the ones whose name, or that of their hosts, shows that they stand above;
/// where none is left, adds those that names show to be leaves.
void leaves_by_signs(const fabric& f, const switch_graph& g, const std::vector<hca_name>& names,
                     std::vector<bool>& leaf);

/// By switch: the smallest of those that links join it to. The planes of a box count as joined.
std::vector<std::uint32_t> connected_switches(const fabric& f);

/// Whether most of them have no link to each other.
bool mostly_apart(const switch_graph& g, std::vector<std::uint32_t> others);

/// Tells what was found above a level, but has the links of a switch below it. Reads the levels found so far.
class lower_switches {
  public:
    lower_switches(const fabric& f, const switch_graph& g) : f_(f), g_(g), compare_(g) {}

    /// Whether `sw`, found above `level`, has the links of a switch one below it; how sure, or 0.
    float sure(std::uint32_t sw, unsigned level);

  private:
    std::string usual_name(unsigned level) const;
    int name_says_leaf(std::uint32_t sw);
    bool only_block(unsigned level);
    bool leads_to_dead_ends(std::uint32_t sw, unsigned level) const;
    bool on_ports_of_lowers(std::uint32_t sw, unsigned level);
    bool on_outer_ports(std::uint32_t sw, const std::vector<std::uint32_t>& mine);
    void list_ends();

    const fabric& f_;
    const switch_graph& g_;
    comparison compare_;
    /// Both directions of each link between switches: from, to, port of `from`. Made when first needed.
    std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint16_t>> ends_;
    std::string leaf_name_, spine_name_;
    bool names_known_ = false, one_block_ = false;
    unsigned one_block_level_ = no_level;
};

}  // namespace banyan::topo::build
