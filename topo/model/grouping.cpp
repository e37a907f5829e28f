// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/grouping.hpp"

#include <algorithm>
#include <map>

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include "topo/model/union_find.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {
namespace {

using leaf_set = std::vector<std::uint32_t>;

/// HCA and leaf, for each port that leads to another box than the HCA's first: it belongs to the same hosts.
using further_leaves = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

further_leaves further_leaves_of(const fabric& f) {
    further_leaves out;
    for (const auto& l : f.links) {
        const auto& [hca, sw] = l.a.kind == node_kind::hca ? std::pair(l.a, l.b) : std::pair(l.b, l.a);
        if (hca.kind != node_kind::hca || sw.kind != node_kind::switch_node) continue;
        const auto box = f.switches[sw.index].box;
        if (f.hcas[hca.index].leaf != none && f.hcas[hca.index].leaf != box) out.emplace_back(hca.index, box);
    }
    std::sort(out.begin(), out.end());
    return out;
}

leaf_set leaves_of(const fabric& f, const further_leaves& further, const std::vector<std::uint32_t>& hcas) {
    leaf_set out;
    for (const auto i : hcas) {
        if (f.hcas[i].leaf != none) out.push_back(f.hcas[i].leaf);
        if (further.empty()) continue;
        for (auto at = std::lower_bound(further.begin(), further.end(), std::pair(i, 0u));
             at != further.end() && at->first == i; ++at)
            out.push_back(at->second);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

constexpr std::size_t most_leaves = 32;  ///< of one host, of which every pair is compared

std::vector<std::uint32_t> nameless_on(const fabric& f, const std::vector<std::uint32_t>& nameless) {
    std::vector<std::uint32_t> out(f.switches.size());
    for (const auto i : nameless)
        if (f.hcas[i].leaf != none) ++out[f.hcas[i].leaf];
    return out;
}

/// For each switch the smallest one of the set of leaves that it is in.
std::vector<std::uint32_t> join_leaves(const fabric& f, const hcas_of_hosts& hosts,
                                       const std::vector<std::uint32_t>& nameless) {
    // Most hosts of a group have the very same leaves: those are counted once.
    boost::unordered_flat_map<leaf_set, std::uint32_t, boost::hash<leaf_set>> alike;
    const auto further = further_leaves_of(f);
    for (const auto& hcas : hosts) ++alike[leaves_of(f, further, hcas)];
    std::vector<std::uint32_t> hosts_on(f.switches.size());
    boost::unordered_flat_map<std::uint64_t, std::uint32_t> shared;
    for (const auto& [leaves, count] : alike)
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            hosts_on[leaves[i]] += count;
            // Of more than any host has, neighbours join what all pairs would.
            const auto last = leaves.size() > most_leaves ? std::min(i + 2, leaves.size()) : leaves.size();
            for (std::size_t j = i + 1; j < last; ++j)
                shared[std::uint64_t{leaves[i]} << 32 | leaves[j]] += count;
        }
    const auto unknown_on = nameless_on(f, nameless);
    union_find out(f.switches.size());
    for (const auto& [pair, count] : shared) {
        const auto a = static_cast<std::uint32_t>(pair >> 32), b = static_cast<std::uint32_t>(pair);
        const auto only_a = hosts_on[a] - count, only_b = hosts_on[b] - count;
        // A host that is on one of them alone may have a nameless HCA on the other. No more of those are
        // believed in than are seen on both.
        const auto may_share =
            std::min(count, std::min(only_a, unknown_on[b]) + std::min(only_b, unknown_on[a]));
        if (count + may_share > only_a + only_b) out.join(a, b);
    }
    return out.smallest();
}

void place_hosts(grouping& g, const fabric& f, const hcas_of_hosts& hosts,
                 const std::vector<std::uint32_t>& nameless) {
    const auto joined = join_leaves(f, hosts, nameless);
    std::vector<std::uint32_t> group_of_root(f.switches.size(), none), roots;
    for (std::size_t h = 0; h < hosts.size(); ++h) {
        roots.clear();
        for (const auto i : hosts[h])
            if (f.hcas[i].leaf != none) roots.push_back(joined[f.hcas[i].leaf]);
        if (roots.empty()) continue;
        auto& group = group_of_root[usual(roots).value];
        if (group == none) group = g.count++;
        g.group_of_host[h] = group;
    }
    for (std::uint32_t sw = 0; sw < f.switches.size(); ++sw) g.group_of_leaf[sw] = group_of_root[joined[sw]];
}

/// Leaves whose set won no host of its own go to the group of most of the hosts on them.
void place_stray_leaves(grouping& g, const fabric& f, const hcas_of_hosts& hosts) {
    std::map<std::uint32_t, std::vector<std::uint32_t>> votes;
    std::vector<bool> reached(f.switches.size());
    for (std::size_t h = 0; h < hosts.size(); ++h)
        for (const auto i : hosts[h]) {
            const auto leaf = f.hcas[i].leaf;
            if (leaf == none) continue;
            reached[leaf] = true;
            if (g.group_of_leaf[leaf] == none) votes[leaf].push_back(g.group_of_host[h]);
        }
    for (const auto& [leaf, groups] : votes) g.group_of_leaf[leaf] = usual(groups).value;
    for (std::size_t sw = 0; sw < reached.size(); ++sw)
        if (!reached[sw]) g.group_of_leaf[sw] = none;
}

class shares {
  public:
    explicit shares(std::size_t groups) : have_(groups), of_(groups) {}
    void add(std::uint32_t group, const usual_value<std::uint16_t>& most) {
        have_[group] += most.have;
        of_[group] += most.of;
    }
    std::vector<double> all() const {
        std::vector<double> out(of_.size());
        for (std::size_t i = 0; i < of_.size(); ++i)
            if (of_[i] > 0) out[i] = static_cast<double>(have_[i]) / static_cast<double>(of_[i]);
        return out;
    }

  private:
    std::vector<std::size_t> have_, of_;
};

constexpr double ports_agree = 0.9;  ///< of two HCAs each, from where on one HCA tells its host's port

void find_ports(grouping& g, const fabric& f, const hcas_of_hosts& hosts) {
    shares aligned(g.count), agreeing(g.count);
    std::vector<std::uint16_t> ports;
    std::vector<std::uint32_t> single;  // hosts of which one HCA has a link
    for (std::uint32_t h = 0; h < hosts.size(); ++h) {
        const auto group = g.group_of_host[h];
        ports.clear();
        for (const auto i : hosts[h])
            if (f.hcas[i].leaf != none) ports.push_back(f.hcas[i].leaf_port);
        if (group == none || ports.empty()) continue;
        const auto most = usual(ports);
        g.port_of_host[h] = most.value;
        if (most.of == 1) single.push_back(h);
        if (most.of > 1) agreeing.add(group, most);
        if (most.have < 2) continue;  // one HCA shows no pattern
        if (most.of > 2) aligned.add(group, most);
        const auto [at, fresh] = g.host_of_port.try_emplace(std::uint64_t{group} << 16 | most.value, h);
        if (!fresh) at->second = none;
    }
    g.alignment = aligned.all();
    g.agreement = agreeing.all();
    for (const auto h : single) {
        if (g.agreement[g.group_of_host[h]] < ports_agree) continue;
        const auto [at, fresh] =
            g.host_of_port.try_emplace(std::uint64_t{g.group_of_host[h]} << 16 | g.port_of_host[h], h);
        if (!fresh) at->second = none;
    }
}

}  // namespace

std::uint32_t grouping::host_at(std::uint32_t group, std::uint16_t port) const {
    const auto at = host_of_port.find(std::uint64_t{group} << 16 | port);
    return at == host_of_port.end() ? none : at->second;
}

std::vector<std::uint32_t> unattributed_hcas(const fabric& f) {
    std::vector<std::uint32_t> out;
    for (const auto& e : f.excluded) {
        if (e.kind != "unattributed") continue;
        const auto at = std::lower_bound(f.hcas.begin(), f.hcas.end(), e.id,
                                         [](const hca& h, guid id) { return h.id < id; });
        out.push_back(static_cast<std::uint32_t>(at - f.hcas.begin()));
    }
    std::sort(out.begin(), out.end());
    return out;
}

grouping group_hosts(const fabric& f, const hcas_of_hosts& hosts,
                     const std::vector<std::uint32_t>& nameless) {
    grouping g;
    g.group_of_leaf.assign(f.switches.size(), none);
    g.group_of_host.assign(hosts.size(), none);
    g.port_of_host.assign(hosts.size(), 0);
    place_hosts(g, f, hosts, nameless);
    place_stray_leaves(g, f, hosts);
    find_ports(g, f, hosts);
    return g;
}

}  // namespace banyan::topo::build
