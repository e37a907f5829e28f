// SPDX-License-Identifier: BSD-3-Clause
//
// Which hosts serve the fabric or storage: what names say, and how hosts are connected beside the others.
#include <algorithm>
#include <map>
#include <numeric>

#include <boost/unordered/unordered_flat_map.hpp>
#include <fmt/format.h>

#include "topo/model/hosts.hpp"
#include "topo/model/names.hpp"
#include "topo/model/usual.hpp"

namespace banyan::topo::build {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

/// The ports of leaves on which hosts sit one beside the other.
class host_rows {
  public:
    host_rows(const state& s, const host_list& hosts) : f_(s.out), hosts_(hosts) {}

    /// Whether the HCA is between two hosts of so many HCAs, and its port is free on their other leaves: then
    /// a host sits there of which the others are missing.
    bool has(std::uint32_t hca, std::size_t usual) {
        const auto& h = f_.hcas[hca];
        if (h.leaf == none || h.leaf_port == 0) return false;
        take_ports();
        const auto before = at(h.leaf, h.leaf_port - 1u), after = at(h.leaf, h.leaf_port + 1u);
        if (before == none || after == none || hosts_.hcas[before].size() != usual ||
            hosts_.hcas[after].size() != usual)
            return false;
        std::size_t others = 0;
        for (const auto i : hosts_.hcas[before]) {
            const auto leaf = f_.hcas[i].leaf;
            if (leaf == none || leaf == h.leaf || at(leaf, h.leaf_port - 1u) != before) continue;
            if (at(leaf, h.leaf_port + 1u) != after || at(leaf, h.leaf_port) != none) return false;
            ++others;
        }
        return others > 0;
    }

  private:
    void take_ports() {
        if (!host_of_port_.empty()) return;
        for (std::uint32_t h = 0; h < hosts_.hcas.size(); ++h)
            for (const auto i : hosts_.hcas[h])
                if (f_.hcas[i].leaf != none)
                    host_of_port_[std::uint64_t{f_.hcas[i].leaf} << 32 | f_.hcas[i].leaf_port] = h;
    }
    std::uint32_t at(std::uint32_t leaf, unsigned port) const {
        const auto found = host_of_port_.find(std::uint64_t{leaf} << 32 | port);
        return found == host_of_port_.end() ? none : found->second;
    }

    const fabric& f_;
    const host_list& hosts_;
    boost::unordered_flat_map<std::uint64_t, std::uint32_t> host_of_port_;
};

/// Tells hosts that serve the fabric or storage from those that compute. But for a name by which storage
/// goes, no sign is enough by itself: each is weak, and counts.
class service_hosts {
  public:
    service_hosts(const state& s, const host_list& hosts) : s_(s), site_(s.options.site), rows_(s, hosts) {
        for (std::size_t h = 0; h < hosts.names.size(); ++h) {
            auto& p = patterns_[name_pattern(hosts.names[h])];
            ++p.hosts;
            p.most_hcas = std::max(p.most_hcas, hosts.hcas[h].size());
            p.above += above_leaves(hosts.hcas[h]);
            p.cards += is_card(hosts.hcas[h]);
            most_of_pattern_ = std::max(most_of_pattern_, p.hosts);
        }
        usual_ = usual(counts_of_others(hosts));
        for (std::size_t h = 0; h < hosts.names.size(); ++h)
            if (!is_manager_name(hosts.names[h]))
                most_of_others_ = std::max(most_of_others_, patterns_.at(name_pattern(hosts.names[h])).hosts);
    }
    /// The kind of exclusion and why; empty for a compute host.
    std::pair<const char*, std::string> operator()(std::string_view name,
                                                   const std::vector<std::uint32_t>& hcas) {
        if (contains(site_.compute_hosts, name)) return {};
        if (contains(site_.management_hosts, name))
            return {"ufm", "the site file names it a management host"};
        if (contains(site_.storage_hosts, name)) return {"storage", "the site file names it a storage host"};
        // Slurm's own files: it runs jobs on all of them.
        if (s_.source.untold.cables) return {};
        if (is_storage_name(name)) return {"storage", "named as storage servers are"};
        unsigned points = 0;
        std::string why;
        const auto sign = [&](bool there, unsigned worth, const std::string& what) {
            if (!there) return;
            points += worth;
            why += (why.empty() ? "" : ", ") + what;
        };
        const auto& p = patterns_.at(name_pattern(name));
        const bool manager = is_manager_name(name);
        sign(manager, 2, "named as managers and gateways are");
        // A host that has lost its rails is named as the others are, and must not vanish.
        const bool fewer = hcas.size() == 1 && p.most_hcas == 1 && usual_.value >= 2;
        const bool of_many = usual_.of >= 16 && usual_.share() >= 0.9;
        sign(fewer, usual_.value >= 3 || of_many ? 2 : 1,
             fmt::format("one HCA where most hosts have {}", usual_.value));
        // A cluster may be called "sm001" to "sm200"; then most are.
        sign(10 * p.hosts <= most_of_pattern_ || (fewer && p.hosts < most_of_pattern_) ||
                 (manager && p.hosts <= most_of_others_),
             1, "a name of another form than most");
        const bool above = above_leaves(hcas);
        sign(above, 2, "on no leaf but above them");
        sign(above && p.above == p.hosts, 1, "as all of that name");
        const bool card = fewer && p.cards == p.hosts;
        sign(card, 2, "a card of another host by its chip, as all of that name");
        if (points < 3) return {};
        // Its like may be called so, and it has lost the others of its HCAs.
        if (points == 3 && fewer && rows_.has(hcas[0], usual_.value)) return {};
        return {card ? "dpu" : "ufm", why};
    }

  private:
    /// How many HCAs each host has, without cards that are called otherwise than hosts: a host has a few of
    /// those at most beside its HCAs, yet they may be as many as the hosts are.
    std::vector<std::size_t> counts_of_others(const host_list& hosts) const {
        std::vector<std::size_t> all, others;
        for (std::size_t h = 0; h < hosts.names.size(); ++h) {
            all.push_back(hosts.hcas[h].size());
            const auto& p = patterns_.at(name_pattern(hosts.names[h]));
            if (p.most_hcas != 1 || p.cards != p.hosts) others.push_back(all.back());
        }
        const auto hcas = std::accumulate(others.begin(), others.end(), std::size_t{0});
        return 2 * (all.size() - others.size()) <= hcas ? others : all;
    }

    bool above_leaves(const std::vector<std::uint32_t>& hcas) const {
        return std::all_of(hcas.begin(), hcas.end(), [&](auto i) {
            const auto leaf = s_.out.hcas[i].leaf;
            return leaf != none && s_.out.switches[leaf].level != 0;
        });
    }

    /// A BlueField that runs a system of its own. The same chips are plain HCAs of hosts, too.
    bool is_card(const std::vector<std::uint32_t>& hcas) const {
        return std::all_of(hcas.begin(), hcas.end(), [&](auto i) {
            const auto chip = s_.chip_of_hca[i];
            return chip == 0xa2d2 || chip == 0xa2d6 || chip == 0xa2dc;  // BlueField-1 to 3
        });
    }

    struct pattern {
        std::size_t hosts = 0, most_hcas = 0, above = 0, cards = 0;
    };
    const state& s_;
    const site_description& site_;
    usual_value<std::size_t> usual_;
    std::size_t most_of_pattern_ = 0, most_of_others_ = 0;
    std::map<std::string, pattern> patterns_;
    host_rows rows_;
};

}  // namespace

void set_services_aside(state& s, host_list& hosts) {
    service_hosts service(s, hosts);
    std::vector<std::pair<const char*, std::string>> judged;  // all, before any is taken away
    for (std::size_t h = 0; h < hosts.names.size(); ++h)
        judged.push_back(service(hosts.names[h], hosts.hcas[h]));
    std::size_t kept = 0;
    for (std::size_t h = 0; h < hosts.names.size(); ++h) {
        const auto& [kind, why] = judged[h];
        if (kind) {
            for (const auto i : hosts.hcas[h]) exclude(s, i, kind, why);
            continue;
        }
        hosts.names[kept] = hosts.names[h];
        if (kept != h) hosts.hcas[kept] = std::move(hosts.hcas[h]);
        ++kept;
    }
    hosts.names.resize(kept);
    hosts.hcas.resize(kept);
}

}  // namespace banyan::topo::build
