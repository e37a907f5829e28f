// SPDX-License-Identifier: BSD-3-Clause
//
// Hosts against the others of their group: links that they lack, and two of them on one leaf.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "topo/counted.hpp"
#include "topo/model/build.hpp"
#include "topo/model/grouping.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {
namespace {

std::set<std::uint32_t> leaves_of(const fabric& f, std::uint32_t host) {
    std::set<std::uint32_t> out;
    for (const auto i : f.hosts[host].hcas)
        if (f.hcas[i].leaf != none) out.insert(f.hcas[i].leaf);
    return out;
}

/// Of the leaves of its group on which it has no HCA, the port that it has on the others.
std::vector<std::string> free_ports(const state& s, const leaf_group& g, std::uint32_t host) {
    const auto& f = s.out;
    std::vector<std::uint16_t> ports;
    for (const auto i : f.hosts[host].hcas)
        if (f.hcas[i].leaf != none) ports.push_back(f.hcas[i].leaf_port);
    const auto has = leaves_of(f, host);
    const auto port = usual(std::move(ports));
    if (g.alignment < least_agreement || port.have < 2) return {};
    std::vector<std::string> out;
    for (const auto leaf : g.leaves)
        if (!has.contains(leaf)) out.push_back(port_id(f.switches[leaf].id, port.value));
    return out;
}

/// HCAs of which nobody knows whose they are, and which may be those that hosts on their leaves seem to lack.
class open_hcas {
  public:
    explicit open_hcas(const fabric& f) : f_(f) {
        for (const auto i : unattributed_hcas(f))
            if (f.hcas[i].leaf != none) of_leaf_[f.hcas[i].leaf].push_back(f.hcas[i].leaf_port);
    }

    /// Of a group of which these hosts lack HCAs. Where ports tell whose an HCA is, none is open; several on
    /// one port of the leaves are a host of their own.
    void take(const leaf_group& g, const std::vector<std::uint32_t>& lacking) {
        chance_.clear();
        all_ = 0;
        if (lacking.empty() || of_leaf_.empty() || g.alignment >= ports_tell) return;
        std::map<std::uint16_t, std::size_t> on_port;
        std::map<std::uint32_t, std::size_t> open, have;
        each_of(g, [&](std::uint32_t, std::uint16_t port) { ++on_port[port]; });
        each_of(g, [&](std::uint32_t leaf, std::uint16_t port) { open[leaf] += on_port[port] == 1; });
        for (const auto h : lacking)
            for (const auto leaf : leaves_of(f_, h)) ++have[leaf];
        for (const auto& [leaf, hcas] : open) {
            const auto lack = lacking.size() - have[leaf];
            if (lack == 0) continue;
            chance_[leaf] = std::min(1.0, static_cast<double>(hcas) / static_cast<double>(lack));
            all_ += chance_[leaf];
        }
    }

    /// How many of the HCAs that one of these hosts seems to lack are there, by all that is known.
    double likely(std::uint32_t host) const {
        auto out = all_;
        if (!chance_.empty())
            for (const auto leaf : leaves_of(f_, host))
                if (const auto at = chance_.find(leaf); at != chance_.end()) out -= at->second;
        return out;
    }

  private:
    template <class Function>
    void each_of(const leaf_group& g, Function function) const {
        for (const auto leaf : g.leaves)
            if (const auto at = of_leaf_.find(leaf); at != of_leaf_.end())
                for (const auto port : at->second) function(leaf, port);
    }

    const fabric& f_;
    std::map<std::uint32_t, std::vector<std::uint16_t>> of_leaf_;  ///< their ports
    std::map<std::uint32_t, double> chance_;  ///< by leaf: that it has the HCA which a host lacks there
    double all_ = 0;
};

void missing_rails_of(state& s, const leaf_group& g, std::size_t expected, const std::string& most,
                      open_hcas& open) {
    const auto& f = s.out;
    std::vector<std::uint32_t> lacking;
    for (const auto h : g.hosts)
        if (f.hosts[h].rails < expected) lacking.push_back(h);
    open.take(g, lacking);
    for (const auto h : lacking) {
        const auto short_of = static_cast<double>(expected - f.hosts[h].rails);
        const auto likely = open.likely(h);
        // As many are there: that they have no names was said of each.
        if (likely > short_of - 0.001 || s.counts_only("missing-rail")) continue;
        s.report(
            "missing-rail", {f.hosts[h].name},
            fmt::format("{} with a link, most hosts of {} have {}{}", counted(f.hosts[h].rails, "HCA"), most,
                        expected, likely > 0 ? "; some on its leaves have no name, and may be its own" : ""),
            0.95 * (1 - likely / short_of), free_ports(s, g, h));
    }
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
    open_hcas open(f);
    for (const auto& g : f.leaf_groups) {
        of_group.clear();
        for (const auto h : g.hosts) of_group.push_back(everywhere[h]);
        // A group that lacks a leaf has fewer everywhere: that is the leaf's defect. In a group of one or two
        // hosts only the rest of the fabric can tell.
        const auto here = usual(of_group);
        const auto expected = here.of >= 3 ? here.value : std::max(here.value, usual_anywhere.value);
        missing_rails_of(s, g, expected, here.of >= 3 ? g.id : "the fabric", open);
    }
    for (const auto& h : f.hosts)
        if (h.leaf_group == none)
            s.report("missing-rail", {h.name}, "none of its HCAs has a link to a switch", 1.0);
}

}  // namespace banyan::topo::build
