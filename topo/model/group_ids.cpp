// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/group_ids.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <tuple>

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

namespace banyan::topo::build {
namespace {

constexpr std::size_t most_remembered = 4096;  ///< groups that are gone

constexpr std::uint64_t highest = 1'000'000'000;

/// N of "gN"; 0 for what was not numbered here.
std::uint64_t number_of(const std::string& id) {
    std::uint64_t n = 0;
    const auto* end = id.data() + id.size();
    return id.starts_with('g') && std::from_chars(id.data() + 1, end, n).ptr == end && n <= highest ? n : 0;
}

std::vector<guid> switches_of(const fabric& f, const leaf_group& g) {
    std::vector<guid> out;
    for (const auto leaf : g.leaves) out.push_back(f.switches[leaf].id);
    return out;
}

/// The groups in the order of their smallest switch; those without one last. Where GUIDs are made up, in that
/// of their first hosts, which they have.
std::vector<std::uint32_t> by_switch(const fabric& f) {
    const auto first = [&](std::uint32_t g) {
        const auto& leaves = f.leaf_groups[g].leaves;
        return leaves.empty() ? none : *std::min_element(leaves.begin(), leaves.end());
    };
    std::vector<std::uint32_t> out(f.leaf_groups.size());
    std::iota(out.begin(), out.end(), 0u);
    if (f.untold.guids) return out;
    std::stable_sort(out.begin(), out.end(), [&](auto a, auto b) { return first(a) < first(b); });
    return out;
}

class matching {
  public:
    matching(fabric& now, const fabric& before) : now_(now), taken_(now.leaf_groups.size()) {
        for (const auto& g : before.leaf_groups) known_.push_back({g.id, switches_of(before, g)});
        known_.insert(known_.end(), before.gone_groups.begin(), before.gone_groups.end());
        // An id that a damaged state has twice is nobody's second time.
        boost::unordered_flat_set<std::string_view> seen{""};
        for (const auto& k : known_) used_.push_back(!seen.insert(k.id).second);
    }

    void by_switches() {
        boost::unordered_flat_map<guid, std::uint32_t> owner;
        // One of the present groups wins over one that is gone.
        for (std::uint32_t k = 0; k < known_.size(); ++k)
            for (const auto id : known_[k].leaves) owner.try_emplace(id, k);
        match([&](const leaf_group& g, auto vote) {
            for (const auto id : switches_of(now_, g))
                if (const auto at = owner.find(id); at != owner.end()) vote(at->second);
            return g.leaves.size();
        });
    }

    void by_hosts(const fabric& before) {
        boost::unordered_flat_map<std::string_view, std::uint32_t> owner;
        for (const auto& h : before.hosts)
            if (h.leaf_group != none) owner.emplace(h.name, h.leaf_group);
        match([&](const leaf_group& g, auto vote) {
            for (const auto h : g.hosts)
                if (const auto at = owner.find(now_.hosts[h].name); at != owner.end()) vote(at->second);
            return g.hosts.size();
        });
    }

    void number_the_rest() {
        std::uint64_t last = 0;
        for (const auto& k : known_) last = std::max(last, number_of(k.id));
        for (const auto g : by_switch(now_))
            if (!taken_[g]) now_.leaf_groups[g].id = "g" + std::to_string(++last);
    }

    void remember_the_gone() {
        now_.gone_groups.clear();
        for (std::size_t k = 0; k < known_.size() && now_.gone_groups.size() < most_remembered; ++k)
            if (!used_[k]) now_.gone_groups.push_back(known_[k]);
    }

  private:
    struct pair {
        std::uint32_t shared, known, group;
    };
    /// `votes(group, vote)` calls vote(known) for each member that the id stood for, and returns how many
    /// members there are. Most in common first; half of the group it must be.
    template <class Votes>
    void match(Votes votes) {
        std::vector<pair> all;
        boost::unordered_flat_map<std::uint32_t, std::uint32_t> count;
        for (std::uint32_t g = 0; g < now_.leaf_groups.size(); ++g) {
            if (taken_[g]) continue;
            count.clear();
            const auto members = votes(now_.leaf_groups[g], [&](std::uint32_t known) { ++count[known]; });
            for (const auto& [known, shared] : count)
                if (2 * shared >= members) all.push_back({shared, known, g});
        }
        std::sort(all.begin(), all.end(), [](const pair& a, const pair& b) {
            return std::tuple(b.shared, a.known, a.group) < std::tuple(a.shared, b.known, b.group);
        });
        for (const auto& p : all) {
            if (used_[p.known] || taken_[p.group]) continue;
            used_[p.known] = taken_[p.group] = true;
            now_.leaf_groups[p.group].id = known_[p.known].id;
        }
    }

    fabric& now_;
    std::vector<gone_group> known_;
    std::vector<bool> used_, taken_;  ///< by known id; by group
};

}  // namespace

void number_groups(fabric& f) {
    std::size_t n = 0;
    for (const auto g : by_switch(f)) f.leaf_groups[g].id = "g" + std::to_string(++n);
}

void keep_group_ids(fabric& now, const fabric& before) {
    matching m(now, before);
    m.by_switches();
    m.by_hosts(before);
    m.number_the_rest();
    m.remember_the_gone();
}

}  // namespace banyan::topo::build
