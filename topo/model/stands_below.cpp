// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "topo/model/build.hpp"
#include "topo/model/names.hpp"
#include "topo/model/switch_graph.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {

/// How most switches of a level are called.
std::string lower_switches::usual_name(unsigned level) const {
    std::vector<std::string> all;
    for (const auto& sw : f_.switches)
        if (sw.level == level && !is_factory_switch(sw.name)) all.push_back(name_pattern(sw.name));
    const auto most = usual(std::move(all));
    return most.share() > 0.5 ? most.value : std::string();
}

/// 1: called as leaves are, -1: called as what stands above them, 0: names say nothing.
int lower_switches::name_says_leaf(std::uint32_t sw) {
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

float lower_switches::sure(std::uint32_t sw, unsigned level) {
    if (level == 0) return 0;
    std::vector<std::uint32_t> mine;
    for (const auto p : g_.peers[sw])
        if (f_.switches[p].level == level) mine.push_back(p);
    const auto like =
        compare_.nearest(sw, mine, [&](std::uint32_t i) { return f_.switches[i].level == level - 1; });
    if (like.sw == none) return 0;
    std::size_t its = 0;
    for (const auto p : g_.peers[like.sw]) its += f_.switches[p].level == level;
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
bool lower_switches::only_block(unsigned level) {
    if (one_block_level_ == level) return one_block_;
    one_block_level_ = level;
    one_block_ = true;
    std::vector<std::uint32_t> first, lowers, both;
    for (std::uint32_t i = 0; i < f_.switches.size() && one_block_; ++i) {
        if (f_.switches[i].level != level) continue;
        lowers.clear();
        for (const auto p : g_.peers[i])
            if (f_.switches[p].level == level - 1) lowers.push_back(p);
        if (first.empty()) first = lowers;
        both.clear();
        std::set_intersection(lowers.begin(), lowers.end(), first.begin(), first.end(),
                              std::back_inserter(both));
        one_block_ = !both.empty();
    }
    return one_block_;
}

}  // namespace banyan::topo::build
