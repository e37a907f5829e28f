// SPDX-License-Identifier: BSD-3-Clause
//
// Which HCAs of hosts lead to storage. A host's compute HCAs divide the hosts alike, into leaf groups; those
// for storage lead to switches that several groups share, or to others than the groups have.
#include <algorithm>
#include <map>
#include <set>

#include "topo/model/divisions.hpp"
#include "topo/model/hosts.hpp"
#include "topo/model/names.hpp"
#include "topo/model/storage_makes.hpp"
#include "topo/model/switch_graph.hpp"

namespace banyan::topo::build {
namespace {

constexpr const char* shared = "leads to switches that several leaf groups share";
constexpr const char* perhaps = "perhaps for storage; the site file's [storage] devices tells";

/// Device of the make -> why it is for storage.
using storage_devices = std::map<std::uint32_t, std::string>;

class storage_finder {
  public:
    storage_finder(const state& s, const host_make& m, const std::vector<std::uint32_t>& parts)
        : s_(s), m_(m), parts_(parts) {}

    storage_devices find() {
        classify();
        const auto& base = base_class();
        for (const auto& c : classes_) {
            if (&c == &base) continue;
            const auto how = compare_divisions(m_.leaves[c[0]], m_.leaves[base[0]]);
            const bool few = base.size() >= 3 && base.size() >= 2 * c.size();
            if (few || (how == divides::coarser && base.size() > c.size()))
                add(c, how == divides::coarser ? shared
                                               : "leads to other switches than those of its leaf group");
            else if (how == divides::coarser)
                add(c, perhaps);
        }
        by_switches(base);
        return std::move(out_);
    }

  private:
    using device_class =
        std::vector<std::size_t>;  ///< indices into the make's devices that divide its hosts alike

    void classify() {
        for (std::size_t d = 0; d < m_.devices.size(); ++d) {
            const auto same = std::find_if(classes_.begin(), classes_.end(), [&](const auto& c) {
                return compare_divisions(m_.leaves[d], m_.leaves[c[0]]) == divides::alike;
            });
            if (same == classes_.end())
                classes_.push_back({d});
            else
                same->push_back(d);
        }
    }

    /// The class of most devices; where these are so few that they may lead to storage, the class with the
    /// smallest groups.
    const device_class& base_class() const {
        const auto* most = &classes_.front();
        for (const auto& c : classes_)
            if (c.size() > most->size()) most = &c;
        if (most->size() >= 3) return *most;
        for (const auto& c : classes_)
            if (compare_divisions(m_.leaves[c[0]], m_.leaves[(*most)[0]]) == divides::finer) most = &c;
        return *most;
    }

    void add(const device_class& c, const char* why) {
        for (const auto d : c) out_.emplace(m_.devices[d], why);
    }

    /// Adds those that divide the hosts as the rails do, on switches that are named for storage or that no
    /// link joins to the rest.
    void by_switches(const device_class& base) {
        const auto part_of = [&](std::size_t d) { return parts_[first_leaf(d)]; };
        std::map<std::uint32_t, std::size_t> in_part;
        for (const auto d : base) ++in_part[part_of(d)];
        device_class named, apart;
        for (const auto d : base) {
            if (serves_storage(d)) named.push_back(d);
            // A rail that lost its way up is a part of its own, too, but of one switch.
            const auto whole = std::count(parts_.begin(), parts_.end(), part_of(d));
            if (whole > 1 && 2 * in_part[part_of(d)] < base.size() && in_part.size() == 2) apart.push_back(d);
        }
        if (named.size() < base.size()) add(named, "leads to switches of storage");
        if (apart.size() < base.size()) add(apart, "leads to another fabric than most HCAs of its host");
    }

    std::uint32_t first_leaf(std::size_t d) const {
        const auto& leaves = m_.leaves[d];
        return *std::find_if(leaves.begin(), leaves.end(), [](auto leaf) { return leaf != none; });
    }
    bool serves_storage(std::size_t d) const {
        const auto& leaves = m_.leaves[d];
        return std::all_of(leaves.begin(), leaves.end(), [&](auto leaf) {
            return leaf == none || is_storage_name(short_switch_name(s_.out.switches[leaf].name));
        });
    }

    const state& s_;
    const host_make& m_;
    const std::vector<std::uint32_t>& parts_;  ///< by switch: what links join
    std::vector<device_class> classes_;
    storage_devices out_;
};

/// Hosts that are all in one group do not show which of their HCAs divide them otherwise; hosts of other
/// makes do. Such hosts use an HCA for storage where its leaf has hosts of another make too, while most of
/// their HCAs have leaves of their own.
void add_by_other_makes(const state& s, const host_list& hosts, const std::vector<host_make>& makes,
                        std::vector<int>& tally, std::vector<std::string>& why) {
    std::map<std::uint32_t, std::set<const host_make*>> makes_of_leaf;
    for (const auto& make : makes)
        for (const auto& leaves : make.leaves)
            for (const auto leaf : leaves) makes_of_leaf[leaf].insert(&make);
    const auto devices_where = [](const host_make& make, auto is) {
        std::set<std::uint32_t> out;
        for (std::size_t d = 0; d < make.devices.size(); ++d)
            if (std::ranges::all_of(make.leaves[d], [&](auto leaf) { return leaf == none || is(leaf); }))
                out.insert(make.devices[d]);
        return out;
    };
    for (const auto& make : makes) {
        const auto found = [&](auto h) {
            return std::ranges::any_of(hosts.hcas[h], [&](auto i) { return !why[i].empty(); });
        };
        if (std::ranges::any_of(make.hosts, found)) continue;
        const auto of_others = [&](auto leaf) { return makes_of_leaf[leaf].size() > 1; };
        const auto of_storage = devices_where(make, of_others);
        const auto own = devices_where(make, [&](auto leaf) { return !of_others(leaf); });
        // A leaf of both kinds has crossed cables.
        if (own.size() <= of_storage.size() || own.size() + of_storage.size() < make.devices.size()) continue;
        for (const auto h : make.hosts)
            for (const auto i : hosts.hcas[h]) {
                if (!of_storage.contains(s.device_of_hca[i])) continue;
                why[i] = shared;
                if (s.out.hcas[i].leaf != none) tally[s.out.hcas[i].leaf] += 2;
            }
    }
}

}  // namespace

void set_storage_rails_aside(state& s, host_list& hosts) {
    if (s.options.site.storage_devices || s.source.untold.rails) return;
    std::vector<std::string> why(s.out.hcas.size());
    // By leaf: HCAs that lead to storage less those that do not.
    std::vector<int> tally(s.out.switches.size());
    std::vector<bool> of_make(hosts.hcas.size());
    const auto parts = connected_switches(s.out);
    const auto makes = makes_of(s, hosts);
    for (const auto& make : makes) {
        const auto found = storage_finder(s, make, parts).find();
        for (const auto h : make.hosts) {
            of_make[h] = true;
            for (const auto i : hosts.hcas[h]) {
                const auto at = found.find(s.device_of_hca[i]);
                if (at != found.end()) why[i] = at->second;
                if (s.out.hcas[i].leaf != none) tally[s.out.hcas[i].leaf] += at != found.end() ? 1 : -1;
            }
        }
    }
    add_by_other_makes(s, hosts, makes, tally, why);
    // Hosts of no make are too odd to tell what a leaf is for, but with three HCAs they are no servers.
    for (std::size_t h = 0; h < hosts.hcas.size(); ++h)
        for (const auto i : hosts.hcas[h])
            if (!of_make[h] && hosts.hcas[h].size() >= 3 && s.out.hcas[i].leaf != none)
                --tally[s.out.hcas[i].leaf];
    const auto tally_of = [&](std::uint32_t i) {
        return s.out.hcas[i].leaf != none ? tally[s.out.hcas[i].leaf] : 0;
    };
    const auto leads_to_storage = [&](std::uint32_t i) { return tally_of(i) > 0; };
    std::size_t kept = 0;
    for (std::size_t h = 0; h < hosts.hcas.size(); ++h) {
        auto& hcas = hosts.hcas[h];
        const bool server = !hcas.empty() && std::all_of(hcas.begin(), hcas.end(), leads_to_storage);
        std::erase_if(hcas, [&](auto i) {
            // What few show of a leaf on which most compute are crossed cables.
            if (!server && (why[i].empty() || tally_of(i) < 0)) return false;
            exclude(s, i, "storage", server ? "its host is on the switches of storage alone" : why[i]);
            return true;
        });
        if (hcas.empty()) continue;
        if (kept != h) hosts.names[kept] = hosts.names[h], hosts.hcas[kept] = std::move(hcas);
        ++kept;
    }
    hosts.names.resize(kept);
    hosts.hcas.resize(kept);
}

}  // namespace banyan::topo::build
