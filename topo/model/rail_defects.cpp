// SPDX-License-Identifier: BSD-3-Clause
//
// Hosts against the others of their group: links that they lack, and two of them on one leaf.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "topo/model/build.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {
namespace {

/// Of the leaves of its group on which it has no HCA, the port that it has on the others.
std::vector<std::string> free_ports(const state& s, const leaf_group& g, std::uint32_t host) {
    const auto& f = s.out;
    std::vector<std::uint16_t> ports;
    std::set<std::uint32_t> has;
    for (const auto i : f.hosts[host].hcas) {
        if (f.hcas[i].leaf == none) continue;
        ports.push_back(f.hcas[i].leaf_port);
        has.insert(f.hcas[i].leaf);
    }
    const auto port = usual(std::move(ports));
    if (g.alignment < least_agreement || port.have < 2) return {};
    std::vector<std::string> out;
    for (const auto leaf : g.leaves)
        if (!has.contains(leaf)) out.push_back(port_id(f.switches[leaf].id, port.value));
    return out;
}

}  // namespace

/// Two HCAs of a host on one leaf, where the group's hosts have one on each: half of its way up is gone, and
/// one switch takes it off the fabric.
void find_doubled_leaves(state& s) {
    const auto& f = s.out;
    std::set<std::string> misplaced;
    for (const auto& d : f.defects)
        if (d.kind == "wrong-rail" || d.kind == "foreign-leaf" || d.kind == "swapped-cables")
            misplaced.insert(d.objects.begin(), d.objects.end());
    std::vector<std::uint32_t> leaves;
    for (const auto& g : f.leaf_groups) {
        std::vector<std::pair<std::uint32_t, std::uint32_t>> doubled;  // host, leaf
        std::size_t clean = 0;
        for (const auto h : g.hosts) {
            leaves.clear();
            for (const auto i : f.hosts[h].hcas)
                if (f.hcas[i].leaf != none && !s.doubtful_host[i]) leaves.push_back(f.hcas[i].leaf);
            std::sort(leaves.begin(), leaves.end());
            const auto twice = std::adjacent_find(leaves.begin(), leaves.end());
            if (twice != leaves.end())
                doubled.emplace_back(h, *twice);
            else
                clean += leaves.size() > 1;
        }
        if (clean < 3 || clean < 3 * doubled.size()) continue;
        for (const auto& [h, leaf] : doubled) {
            const auto& host = f.hosts[h];
            // Where the number shows which of the two is wrong, that was said.
            const bool told = std::any_of(host.hcas.begin(), host.hcas.end(),
                                          [&](auto i) { return misplaced.contains(f.hcas[i].name); });
            if (!told)
                s.report(
                    "same-leaf", {host.name},
                    fmt::format("two of its HCAs are on {}; the other hosts of {} have each on a leaf of "
                                "its own",
                                label(s, leaf), g.id),
                    0.95, {hex(f.switches[leaf].id)});
        }
    }
}

void find_missing_rails(state& s) {
    const auto& f = s.out;
    std::vector<std::size_t> everywhere, of_group;
    for (const auto& h : f.hosts) everywhere.push_back(h.rails);
    const auto usual_anywhere = usual(everywhere);
    for (const auto& g : f.leaf_groups) {
        of_group.clear();
        for (const auto h : g.hosts) of_group.push_back(everywhere[h]);
        // A group that lacks a leaf has fewer everywhere: that is the leaf's defect. In a group of one or two
        // hosts only the rest of the fabric can tell.
        const auto here = usual(of_group);
        const auto expected = here.of >= 3 ? here.value : std::max(here.value, usual_anywhere.value);
        for (const auto h : g.hosts)
            if (everywhere[h] < expected && !s.counts_only("missing-rail"))
                s.report("missing-rail", {f.hosts[h].name},
                         fmt::format("{} HCAs with a link, most hosts of {} have {}", everywhere[h],
                                     here.of >= 3 ? g.id : "the fabric", expected),
                         0.95, free_ports(s, g, h));
    }
    for (const auto& h : f.hosts)
        if (h.leaf_group == none)
            s.report("missing-rail", {h.name}, "none of its HCAs has a link to a switch", 1.0);
}

}  // namespace banyan::topo::build
