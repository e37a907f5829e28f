// SPDX-License-Identifier: BSD-3-Clause
//
// Leaf, spine, core: from the whole structure. Hosts make a leaf, but not every switch with a host is one (a
// gateway on a spine), nor has every leaf a host (a rack that is off). So the leaves are those switches with
// hosts that no others contradict; from them levels go up; and what turns up above although its links are
// those of a switch that stands below is taken down again. Names decide only where structure leaves it open.
#include <algorithm>

#include "topo/model/build.hpp"
#include "topo/model/names.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {
namespace {

constexpr std::uint8_t unknown = UINT8_MAX;
/// Of one comparison of a switch with all that share a peer with it. More than any real switch has: 256 peers
/// with 256 each. A dump may claim any mesh; there a sample of the peers must do.
constexpr std::size_t most_steps = 65536;

class leveller {
  public:
    explicit leveller(state& s)
        : s_(s),
          f_(s.out),
          peers_(f_.switches.size()),
          hosts_(f_.switches.size()),
          used_(f_.switches.size()) {
        for (const auto& l : f_.links) {
            if (l.a.kind == node_kind::switch_node && l.b.kind == node_kind::switch_node) {
                peers_[l.a.index].push_back(l.b.index);
                peers_[l.b.index].push_back(l.a.index);
                continue;
            }
            const auto& [hca, sw] = l.a.kind == node_kind::hca ? std::pair(l.a, l.b) : std::pair(l.b, l.a);
            if (sw.kind != node_kind::switch_node) continue;
            const auto name = read_hca_name(f_.hcas[hca.index].name);
            if (name.kind == hca_name::trust::aggregation) continue;
            used_[sw.index] = true;
            // What serves the fabric from any switch makes no leaf.
            hosts_[sw.index] += !is_manager_name(name.host);
        }
        for (auto& list : peers_) {
            std::sort(list.begin(), list.end());
            list.erase(std::unique(list.begin(), list.end()), list.end());
        }
        for (auto& sw : f_.switches) sw.level = unknown;
        // A fabric of managers alone.
        if (std::all_of(hosts_.begin(), hosts_.end(), [](auto n) { return n == 0; }))
            hosts_.assign(used_.begin(), used_.end());
        s.off_confidence.assign(f_.switches.size(), 0);
    }

    void find() {
        find_leaves();
        drop_hosts_above();
        std::vector<std::uint32_t> at_level;
        for (std::uint32_t i = 0; i < f_.switches.size(); ++i)
            if (leaf_[i]) f_.switches[i].level = 0, at_level.push_back(i);
        for (unsigned level = 0; !at_level.empty(); ++level)
            // A chain longer than any fabric must not count round to `unknown`.
            at_level = above(at_level, std::min(level, unknown - 2u));
        reach_the_rest();
    }

  private:
    bool adjacent(std::uint32_t a, std::uint32_t b) const {
        return std::binary_search(peers_[a].begin(), peers_[a].end(), b);
    }

    std::vector<std::uint32_t> contradicting(std::uint32_t sw) const {
        std::vector<std::uint32_t> out;
        for (const auto p : peers_[sw])
            if (leaf_[p]) out.push_back(p);
        return out;
    }

    /// Leaves are not joined to leaves. Where two switches with hosts are, the one above is it that is joined
    /// to many which are not joined to each other, and has fewer hosts than they. What remains (two leaves
    /// back to back, a mesh of leaves) stays.
    void find_leaves() {
        leaf_.assign(f_.switches.size(), false);
        std::vector<std::pair<double, std::uint32_t>> order;  // contradictions a host, most first
        for (std::uint32_t i = 0; i < leaf_.size(); ++i) leaf_[i] = hosts_[i] > 0;
        contradictions_.resize(leaf_.size());
        for (std::uint32_t i = 0; i < leaf_.size(); ++i) {
            if (!leaf_[i]) continue;
            const auto n = contradictions_[i] = contradicting(i).size();
            if (n >= 2) order.emplace_back(-static_cast<double>(n) / static_cast<double>(hosts_[i]), i);
        }
        std::sort(order.begin(), order.end());
        for (const auto& [key, sw] : order) {
            const auto others = contradicting(sw);
            if (!stands_above(sw, others)) continue;
            leaf_[sw] = false;
            for (const auto o : others) --contradictions_[o];
        }
    }

    bool stands_above(std::uint32_t sw, std::vector<std::uint32_t> others) const {
        if (others.size() < 2) return false;
        std::size_t hosts = 0, peers = 0;
        for (const auto o : others) {
            hosts += hosts_[o];
            peers += contradictions_[o];
        }
        const bool fewer_hosts = 2 * hosts_[sw] * others.size() <= hosts;
        const bool more_peers = others.size() * others.size() >= 2 * peers;
        if (!fewer_hosts && !more_peers) return false;
        constexpr std::size_t enough = 32;  // to see whether they are joined to each other
        if (others.size() > enough) others.resize(enough);
        std::size_t joined = 0, pairs = 0;
        for (std::size_t i = 0; i < others.size(); ++i)
            for (std::size_t j = i + 1; j < others.size(); ++j, ++pairs)
                joined += adjacent(others[i], others[j]);
        return 2 * joined < pairs;
    }

    /// Hosts on a core contradict no leaf: its peers are spines. But they are spines of several blocks, of
    /// which every leaf has one.
    void drop_hosts_above() {
        std::vector<std::size_t> hosts;
        for (std::uint32_t i = 0; i < leaf_.size(); ++i)
            if (leaf_[i]) hosts.push_back(hosts_[i]);
        if (hosts.empty()) return;
        const auto middle = hosts.begin() + static_cast<std::ptrdiff_t>(hosts.size() / 2);
        std::nth_element(hosts.begin(), middle, hosts.end());
        const auto strong = [&](std::uint32_t i) { return leaf_[i] && 2 * hosts_[i] > *middle; };
        std::vector<std::uint32_t> above;
        std::size_t leaves = 0, cards = 0;
        for (std::uint32_t i = 0; i < leaf_.size(); ++i)
            if (strong(i)) ++leaves, cards += is_line_card(f_.switches[i].name);
        for (std::uint32_t i = 0; i < leaf_.size(); ++i) {
            if (!leaf_[i] || strong(i)) continue;
            // Below it all may be off, so that only its name is left to go by.
            const auto& name = f_.switches[i].name;
            if (is_line_card(name) ? 2 * cards < leaves : role_in_name(name) == switch_role::upper) {
                above.push_back(i);
                continue;
            }
            const auto like = nearest(i, peers_[i], strong);
            if (like.shared > 0 && 4 * like.shared < 3 * peers_[i].size()) above.push_back(i);
        }
        for (const auto i : above) leaf_[i] = false;
    }

    struct likeness {
        std::uint32_t sw = none;
        std::size_t shared = 0;  ///< peers that both have
    };
    /// The switch among those that fit which has most of `mine` (peers of sw) as its own peers; reckoned from
    /// every so manyth of them where they are too many.
    template <class Fits>
    likeness nearest(std::uint32_t sw, const std::vector<std::uint32_t>& mine, Fits fits) {
        votes_.resize(f_.switches.size());
        std::vector<std::uint32_t> seen;
        likeness best;
        std::size_t steps = 0, looked = 0;
        for (const auto p : mine) steps += peers_[p].size();
        const auto stride = steps / most_steps + 1;
        for (std::size_t i = 0; i < mine.size(); i += stride, ++looked)
            for (const auto other : peers_[mine[i]]) {
                if (other == sw || !fits(other)) continue;
                if (votes_[other]++ == 0) seen.push_back(other);
                if (votes_[other] > best.shared || (votes_[other] == best.shared && other < best.sw))
                    best = {other, votes_[other]};
            }
        for (const auto i : seen) votes_[i] = 0;
        if (stride > 1) best.shared = best.shared * mine.size() / looked;
        return best;
    }

    /// How most switches of a level are called.
    std::string usual_name(unsigned level) const {
        std::vector<std::string> all;
        for (const auto& sw : f_.switches)
            if (sw.level == level && !is_factory_switch(sw.name)) all.push_back(name_pattern(sw.name));
        const auto most = usual(std::move(all));
        return most.share() > 0.5 ? most.value : std::string();
    }

    /// 1: called as leaves are, -1: called as what stands above them, 0: names say nothing.
    int name_says_leaf(std::uint32_t sw) {
        if (!names_known_) {
            leaf_name_ = usual_name(0);
            spine_name_ = usual_name(1);
            names_known_ = true;
        }
        const auto& name = f_.switches[sw].name;
        // Line cards stand above where the leaves are boxes of their own.
        if (is_line_card(name) && !leaf_name_.empty() && !is_line_card(leaf_name_)) return -1;
        if (const auto role = role_in_name(name); role != switch_role::untold)
            return role == switch_role::leaf ? 1 : -1;
        const auto pattern = name_pattern(name);
        if (name.empty() || is_factory_switch(name) || leaf_name_ == spine_name_) return 0;
        return pattern == leaf_name_ ? 1 : pattern == spine_name_ ? -1 : 0;
    }

    /// Whether `sw`, found above `level`, has the links of a switch one below it; how sure, or 0.
    float stands_below(std::uint32_t sw, unsigned level) {
        if (level == 0) return 0;
        std::vector<std::uint32_t> mine;
        for (const auto p : peers_[sw])
            if (f_.switches[p].level == level) mine.push_back(p);
        const auto like =
            nearest(sw, mine, [&](std::uint32_t i) { return f_.switches[i].level == level - 1; });
        if (like.sw == none) return 0;
        std::size_t its = 0;
        for (const auto p : peers_[like.sw]) its += f_.switches[p].level == level;
        const auto all = mine.size() + its - like.shared;
        const auto alike = static_cast<double>(like.shared) / static_cast<double>(all);
        const int name = level == 1 ? name_says_leaf(sw) : 0;
        // Peers of several blocks are what an upper one has.
        if (4 * like.shared < 3 * mine.size()) return 0;
        if (alike < 0.75) return name > 0 ? 0.8f : 0;
        if (name < 0 && only_block(level)) return 0;
        return name > 0 ? 0.95f : name == 0 && only_block(level) ? 0.6f : 0.9f;
    }

    /// Whether all switches at the level share the same peers below: then those above may have them too, and
    /// only names tell a core from a leaf without hosts.
    bool only_block(unsigned level) {
        if (one_block_level_ == level) return one_block_;
        one_block_level_ = level;
        one_block_ = true;
        std::vector<std::uint32_t> first, lowers, both;
        for (std::uint32_t i = 0; i < f_.switches.size() && one_block_; ++i) {
            if (f_.switches[i].level != level) continue;
            lowers.clear();
            for (const auto p : peers_[i])
                if (f_.switches[p].level == level - 1) lowers.push_back(p);
            if (first.empty()) first = lowers;
            both.clear();
            std::set_intersection(lowers.begin(), lowers.end(), first.begin(), first.end(),
                                  std::back_inserter(both));
            one_block_ = !both.empty();
        }
        return one_block_;
    }

    /// Gives all neighbours of `below` their level; returns those that stand one above it.
    std::vector<std::uint32_t> above(const std::vector<std::uint32_t>& below, unsigned level) {
        std::vector<std::uint32_t> found, lower;
        for (const auto low : below)
            for (const auto p : peers_[low])
                if (f_.switches[p].level == unknown) {
                    f_.switches[p].level = unknown - 1;  // once
                    found.push_back(p);
                }
        for (const auto sw : found) f_.switches[sw].level = unknown;
        std::sort(found.begin(), found.end());
        std::vector<float> sure;
        for (const auto sw : found) sure.push_back(stands_below(sw, level));
        std::vector<std::uint32_t> out;
        for (std::size_t i = 0; i < found.size(); ++i) {
            f_.switches[found[i]].level = static_cast<std::uint8_t>(sure[i] > 0 ? level - 1 : level + 1);
            (sure[i] > 0 ? lower : out).push_back(found[i]);
            if (sure[i] > 0) take_down(found[i], sure[i]);
        }
        descend(lower, level);
        if (level == 0 || !joined_to_each_other(below, level)) return out;
        beside(out, level);
        return {};
    }

    /// Whether most switches of the level have links to their own: groups of a dragonfly, under no core.
    bool joined_to_each_other(const std::vector<std::uint32_t>& at_level, unsigned level) const {
        std::size_t joined = 0;
        for (const auto sw : at_level)
            joined += std::any_of(peers_[sw].begin(), peers_[sw].end(),
                                  [&](auto p) { return f_.switches[p].level == level; });
        return 2 * joined > at_level.size();
    }

    /// What is found from there is such a group whose hosts are all off: its spines, and below them leaves.
    void beside(const std::vector<std::uint32_t>& found, unsigned level) {
        for (const auto sw : found) f_.switches[sw].level = static_cast<std::uint8_t>(level);
        auto upper = found;
        while (!upper.empty()) {
            std::vector<std::uint32_t> lower;
            reach(upper, level - 1, lower);
            for (const auto sw : lower) take_down(sw, 0.8f);
            upper.clear();
            reach(lower, level, upper);
        }
    }

    /// Gives all neighbours that have none yet that level.
    void reach(const std::vector<std::uint32_t>& from, unsigned level, std::vector<std::uint32_t>& found) {
        for (const auto sw : from)
            for (const auto p : peers_[sw])
                if (f_.switches[p].level == unknown) {
                    f_.switches[p].level = static_cast<std::uint8_t>(level);
                    found.push_back(p);
                }
    }

    void take_down(std::uint32_t sw, float sure) {
        if (!used_[sw]) s_.off_confidence[sw] = sure;
    }

    /// A spine of a block that is all off was found from its cores: what else it is joined to is below it.
    void descend(std::vector<std::uint32_t> lower, unsigned level) {
        for (unsigned at = level; at > 1 && !lower.empty(); --at) {
            std::vector<std::uint32_t> next;
            for (const auto sw : lower)
                for (const auto p : peers_[sw])
                    if (f_.switches[p].level == unknown) {
                        f_.switches[p].level = static_cast<std::uint8_t>(at - 2);
                        take_down(p, 0.9f);
                        next.push_back(p);
                    }
            lower = std::move(next);
        }
        for (const auto sw : lower)
            for (const auto p : peers_[sw])
                if (f_.switches[p].level == unknown) f_.switches[p].level = 1;
    }

    /// What no way down led to: above whatever it is joined to.
    void reach_the_rest() {
        std::vector<std::uint32_t> queue;
        for (std::uint32_t i = 0; i < f_.switches.size(); ++i)
            if (f_.switches[i].level != unknown) queue.push_back(i);
        std::stable_sort(queue.begin(), queue.end(),
                         [&](auto a, auto b) { return f_.switches[a].level < f_.switches[b].level; });
        for (std::size_t at = 0; at < queue.size(); ++at)
            for (const auto p : peers_[queue[at]])
                if (f_.switches[p].level == unknown) {
                    f_.switches[p].level =
                        static_cast<std::uint8_t>(std::min(f_.switches[queue[at]].level + 1, unknown - 1));
                    queue.push_back(p);
                }
    }

    state& s_;
    fabric& f_;
    std::vector<std::vector<std::uint32_t>> peers_;  ///< by switch: the switches it has a link to, ascending
    std::vector<std::size_t> hosts_;                 ///< by switch: HCAs on it
    std::vector<bool> used_;  ///< by switch: whether there is any, but for aggregation nodes
    std::vector<bool> leaf_;
    std::vector<std::size_t> contradictions_;  ///< by switch with hosts: its peers with hosts
    std::vector<std::size_t> votes_;
    std::string leaf_name_, spine_name_;
    bool names_known_ = false, one_block_ = false;
    unsigned one_block_level_ = unknown;
};

}  // namespace

void find_levels(state& s) { leveller(s).find(); }

}  // namespace banyan::topo::build
