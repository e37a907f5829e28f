// SPDX-License-Identifier: BSD-3-Clause
//
// Which switches with hosts are no leaves, by how they and their hosts are called: before hosts are counted.
#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "topo/model/build.hpp"
#include "topo/model/names.hpp"
#include "topo/model/switch_graph.hpp"
#include "topo/model/union_find.hpp"

namespace banyan::topo::build {
namespace {

/// How the hosts on each switch are called: gateways and storage have names of their own, and are fewer.
class host_forms {
  public:
    host_forms(const fabric& f, const std::vector<hca_name>& names) : on_(f.switches.size()) {
        std::map<std::string, std::uint32_t> known;
        for (const auto& l : f.links) {
            const auto& [hca, sw] = l.a.kind == node_kind::hca ? std::pair(l.a, l.b) : std::pair(l.b, l.a);
            if (hca.kind != node_kind::hca || sw.kind != node_kind::switch_node) continue;
            const auto& name = names[hca.index];
            if (name.kind != hca_name::trust::named || is_manager_name(name.host)) continue;
            const auto form =
                known.try_emplace(name_pattern(name.host), static_cast<std::uint32_t>(known.size()))
                    .first->second;
            hcas_.resize(known.size());
            ++hcas_[form];
            on_[sw.index].push_back(form);
        }
        switches_.resize(hcas_.size());
        for (auto& forms : on_) {
            std::sort(forms.begin(), forms.end());
            forms.erase(std::unique(forms.begin(), forms.end()), forms.end());
            for (const auto form : forms) ++switches_[form];
        }
        most_ = static_cast<std::size_t>(std::max_element(hcas_.begin(), hcas_.end()) - hcas_.begin());
    }
    /// Whether all are called as fewer hosts are, which are on fewer switches. Where none was ever named
    /// nothing is known.
    bool unusual(std::uint32_t sw) const {
        return !on_[sw].empty() && std::all_of(on_[sw].begin(), on_[sw].end(), [&](auto form) {
            return hcas_[form] < hcas_[most_] && switches_[form] < switches_[most_];
        });
    }

  private:
    std::vector<std::vector<std::uint32_t>> on_;  ///< by switch: forms, ascending
    std::vector<std::size_t> hcas_, switches_;    ///< by form
    std::size_t most_ = 0;
};

class signs {
  public:
    signs(const fabric& f, const switch_graph& g, const std::vector<hca_name>& names, std::vector<bool>& leaf)
        : f_(f), g_(g), names_(names), leaf_(leaf) {}

    /// How its hosts are called, or how it is called itself, may show that a switch with hosts is above those
    /// it contradicts, however many hosts it has: first, since what they decide needs no counting.
    void by_signs() {
        std::vector<std::uint32_t> above;
        std::optional<host_forms> forms;
        std::optional<std::vector<bool>> named_leaves;
        for (std::uint32_t i = 0; i < leaf_.size(); ++i) {
            if (!leaf_[i]) continue;
            const auto its_role = role(i);
            if (its_role == switch_role::leaf) continue;
            if (its_role == switch_role::upper) {
                if (!named_leaves) named_leaves = islands_with_named_leaves();
                const auto& peers = g_.peers[i];
                if ((*named_leaves)[i] || std::any_of(peers.begin(), peers.end(), [&](auto p) {
                        return leaf_[p] && role(p) != switch_role::upper;
                    }))
                    above.push_back(i);
                continue;
            }
            std::vector<std::uint32_t> others;
            for (const auto p : g_.peers[i])
                if (leaf_[p]) others.push_back(p);
            if (others.empty()) continue;
            if (!forms) forms.emplace(f_, names_);
            if (!forms->unusual(i)) continue;
            std::erase_if(others, [&](auto o) { return forms->unusual(o); });
            if (others.size() >= 2 && mostly_apart(g_, others)) above.push_back(i);
        }
        for (const auto i : above) leaf_[i] = false;
    }

    /// Where all hosts that are on are above the leaves, only names and managers tell those.
    void without_hosts() {
        if (std::find(leaf_.begin(), leaf_.end(), true) != leaf_.end()) return;
        for (std::uint32_t i = 0; i < leaf_.size(); ++i)
            leaf_[i] = role(i) == switch_role::leaf || (g_.used[i] && role(i) != switch_role::upper);
        if (std::find(leaf_.begin(), leaf_.end(), true) == leaf_.end()) leaf_ = g_.used;
    }

  private:
    /// What its name calls it. A director's line card is above the leaves where those are boxes of their own.
    switch_role role(std::uint32_t sw) const {
        const auto& name = f_.switches[sw].name;
        const auto out = role_in_name(name);
        const auto& peers = g_.peers[sw];
        const bool above_a_box = out == switch_role::leaf && is_line_card(name) &&
                                 std::any_of(peers.begin(), peers.end(), [&](auto p) {
                                     const auto& other = f_.switches[p].name;
                                     return role_in_name(other) == switch_role::leaf && !is_line_card(other);
                                 });
        return above_a_box ? switch_role::upper : out;
    }

    /// By switch: whether links lead from it to one that is called a leaf.
    std::vector<bool> islands_with_named_leaves() const {
        union_find sets(leaf_.size());
        for (std::uint32_t i = 0; i < leaf_.size(); ++i)
            for (const auto p : g_.peers[i]) sets.join(i, p);
        const auto island = sets.smallest();
        std::vector<bool> has(leaf_.size()), out(leaf_.size());
        for (std::uint32_t i = 0; i < leaf_.size(); ++i)
            if (role(i) == switch_role::leaf) has[island[i]] = true;
        for (std::uint32_t i = 0; i < leaf_.size(); ++i) out[i] = has[island[i]];
        return out;
    }

    const fabric& f_;
    const switch_graph& g_;
    const std::vector<hca_name>& names_;
    std::vector<bool>& leaf_;
};

}  // namespace

bool mostly_apart(const switch_graph& g, std::vector<std::uint32_t> others) {
    constexpr std::size_t enough = 32;  // to see whether they are joined to each other
    if (others.size() > enough) others.resize(enough);
    std::size_t joined = 0, pairs = 0;
    for (std::size_t i = 0; i < others.size(); ++i)
        for (std::size_t j = i + 1; j < others.size(); ++j, ++pairs)
            joined += g.adjacent(others[i], others[j]);
    return 2 * joined < pairs;
}

void leaves_by_signs(const fabric& f, const switch_graph& g, const std::vector<hca_name>& names,
                     std::vector<bool>& leaf) {
    signs s(f, g, names, leaf);
    s.by_signs();
    s.without_hosts();
}

}  // namespace banyan::topo::build
