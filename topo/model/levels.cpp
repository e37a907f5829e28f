// SPDX-License-Identifier: BSD-3-Clause
//
// Leaf, spine, core: from the whole structure. Hosts make a leaf, but not every switch with a host is one (a
// gateway on a spine), nor has every leaf a host (a rack that is off). So the leaves are those switches with
// hosts that no others contradict; from them levels go up; and what turns up above although its links are
// those of a switch that stands below is taken down again. Names decide only where structure leaves it open.
#include <algorithm>

#include "topo/model/build.hpp"
#include "topo/model/switch_graph.hpp"

namespace banyan::topo::build {
namespace {

class leveller {
  public:
    leveller(state& s, const switch_graph& g) : s_(s), f_(s.out), g_(g), lower_(f_, g) {
        for (auto& sw : f_.switches) sw.level = no_level;
        s.off_confidence.assign(f_.switches.size(), 0);
    }

    /// Of a tree: what has hosts is a leaf, and there is nothing to doubt.
    void follow_tree() {
        for (std::uint32_t i = 0; i < f_.switches.size(); ++i)
            if (g_.used[i]) f_.switches[i].level = 0;
        reach_the_rest();
    }

    void find() {
        const auto leaf = leaves_by_hosts(f_, g_, s_.hca_names);
        std::vector<std::uint32_t> at_level;
        for (std::uint32_t i = 0; i < f_.switches.size(); ++i)
            if (leaf[i]) {
                f_.switches[i].level = 0;
                at_level.push_back(i);
                take_down(i, 0.8f);
            }
        for (unsigned level = 0; !at_level.empty(); ++level)
            // A chain longer than any fabric must not count round to `no_level`.
            at_level = above(at_level, std::min(level, no_level - 2u));
        reach_the_rest();
    }

  private:
    /// Gives all neighbours of `below` their level; returns those that stand one above it.
    std::vector<std::uint32_t> above(const std::vector<std::uint32_t>& below, unsigned level) {
        std::vector<std::uint32_t> found, lower;
        for (const auto low : below)
            for (const auto p : g_.peers[low])
                if (f_.switches[p].level == no_level) {
                    f_.switches[p].level = no_level - 1;  // once
                    found.push_back(p);
                }
        for (const auto sw : found) f_.switches[sw].level = no_level;
        std::sort(found.begin(), found.end());
        std::vector<float> sure;
        for (const auto sw : found) sure.push_back(lower_.sure(sw, level));
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
            joined += std::any_of(g_.peers[sw].begin(), g_.peers[sw].end(),
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
            for (const auto p : g_.peers[sw])
                if (f_.switches[p].level == no_level) {
                    f_.switches[p].level = static_cast<std::uint8_t>(level);
                    found.push_back(p);
                }
    }

    void take_down(std::uint32_t sw, float sure) {
        if (!g_.used[sw]) s_.off_confidence[sw] = sure;
    }

    /// A spine of a block that is all off was found from its cores: what else it is joined to is below it.
    void descend(std::vector<std::uint32_t> lower, unsigned level) {
        for (unsigned at = level; at > 1 && !lower.empty(); --at) {
            std::vector<std::uint32_t> next;
            for (const auto sw : lower)
                for (const auto p : g_.peers[sw])
                    if (f_.switches[p].level == no_level) {
                        f_.switches[p].level = static_cast<std::uint8_t>(at - 2);
                        take_down(p, 0.9f);
                        next.push_back(p);
                    }
            lower = std::move(next);
        }
        for (const auto sw : lower)
            for (const auto p : g_.peers[sw])
                if (f_.switches[p].level == no_level) f_.switches[p].level = 1;
    }

    /// What no way down led to: above whatever it is joined to.
    void reach_the_rest() {
        std::vector<std::uint32_t> queue;
        for (std::uint32_t i = 0; i < f_.switches.size(); ++i)
            if (f_.switches[i].level != no_level) queue.push_back(i);
        std::stable_sort(queue.begin(), queue.end(),
                         [&](auto a, auto b) { return f_.switches[a].level < f_.switches[b].level; });
        for (std::size_t at = 0; at < queue.size(); ++at)
            for (const auto p : g_.peers[queue[at]])
                if (f_.switches[p].level == no_level) {
                    f_.switches[p].level =
                        static_cast<std::uint8_t>(std::min(f_.switches[queue[at]].level + 1, no_level - 1));
                    queue.push_back(p);
                }
    }

    state& s_;
    fabric& f_;
    const switch_graph& g_;
    lower_switches lower_;
};

}  // namespace

void find_levels(state& s) {
    const switch_graph g(s.out, s.hca_names);
    if (s.source.untold.cables)
        leveller(s, g).follow_tree();
    else
        leveller(s, g).find();
    // A chip of a box that nothing leads to stands where the others of the box do.
    std::vector<std::uint8_t> of_box(s.out.switches.size(), no_level);
    for (const auto& sw : s.out.switches) of_box[sw.box] = std::min(of_box[sw.box], sw.level);
    for (auto& sw : s.out.switches)
        if (sw.level == no_level) sw.level = of_box[sw.box];
}

}  // namespace banyan::topo::build
