// SPDX-License-Identifier: BSD-3-Clause
//
// What all planting shares. So that the truth is never in doubt, no two defects share an object, and none
// hides another:
// - A node, a cable or a host that has a defect is claimed, and gets no second one. A link between claimed
// nodes
//   is left alone where its ends' names are what a report would go by.
// - Misplaced, missing and renamed HCAs claim their host, and take a third of a group's hosts at most: what
// is
//   usual must stay what most have. Groups of fewer than four hosts are left alone.
// - A host keeps its own name on the greater part of its HCAs, unless it has only one or two.
// - Switches that lost links to leaves and leaves that lost links to switches never meet in one missing link
//   that either could explain (plant_switches.cpp).
// Where that leaves room for fewer than were asked for, fewer are planted; truth::asked tells.
#pragma once

#include <numeric>

#include "topo/generate/blueprint.hpp"

namespace banyan::topo::generate {

struct planter {
    planter(blueprint& bp, dice& random, truth& t)
        : b(bp),
          roll(random),
          facts(t),
          node_claimed(bp.nodes.size()),
          host_claimed(bp.hosts.size()),
          cable_claimed(bp.cables.size()),
          hosts_hit(bp.n.groups),
          spoilt(bp.hosts.size()) {
        for (std::size_t h = 0; h < bp.hosts.size(); ++h)
            if (bp.hosts[h].off) take_host(static_cast<std::uint32_t>(h));
    }

    blueprint& b;
    dice& roll;
    truth& facts;
    std::vector<bool> node_claimed, host_claimed, cable_claimed;
    std::vector<std::uint32_t> hosts_hit;  ///< of each group: claimed
    std::vector<std::uint16_t> spoilt;     ///< of each host: HCAs that do not tell where it is

    /// Calls attempt(candidate) in random order until so many have succeeded as the kind's rate asks of `of`;
    /// only `part` of them where several kinds have to share.
    template <class Attempt>
    void plant(defect_kind kind, std::vector<std::uint32_t> candidates, std::size_t of, Attempt attempt,
               double part = 1) {
        if (!wants(kind) || of == 0) return;
        const auto count = [&](double rate) {
            return std::max<std::uint32_t>(1,
                                           static_cast<std::uint32_t>(rate * static_cast<double>(of) + 0.5));
        };
        const auto rate = b.o.rates[static_cast<std::size_t>(kind)];
        const auto wanted = count(rate * part);
        facts.asked[static_cast<std::size_t>(kind)] = count(rate);
        roll.shuffle(candidates);
        std::uint32_t planted = 0;
        for (const auto c : candidates) {
            if (planted == wanted) break;
            if (attempt(c)) ++planted;
        }
    }

    void found(defect_kind kind, std::vector<std::string> objects, std::vector<std::string> where = {}) {
        facts.defects.push_back({kind, std::move(objects), std::move(where)});
    }

    static std::vector<std::uint32_t> range(std::uint32_t first, std::size_t count) {
        std::vector<std::uint32_t> out(count);
        std::iota(out.begin(), out.end(), first);
        return out;
    }
    std::vector<std::uint32_t> all_hosts() const { return range(0, b.hosts.size()); }
    std::vector<std::uint32_t> all_hcas() const { return range(b.first_hca, b.hosts.size() * b.o.rails); }

    bool wants(defect_kind kind) const { return b.o.rates[static_cast<std::size_t>(kind)] > 0; }
    std::uint32_t group_of(std::uint32_t host) const { return b.hosts[host].group; }
    /// Whether a node is there, listed, and has no defect.
    bool sound(std::uint32_t n) const {
        return !node_claimed[n] && !b.nodes[n].gone && !b.nodes[n].silent && !b.nodes[n].repeated;
    }
    bool can_take_host(std::uint32_t host) const {
        const auto group = group_of(host);
        const auto hosts = b.hosts_of_group(group);
        return hosts >= 4 && !host_claimed[host] && hosts_hit[group] < std::max(1u, hosts / 3);
    }
    /// Whether the others of its HCAs show where one of them should be.
    bool shows_place(std::uint32_t host) const {
        std::uint32_t there = 0;
        for (std::uint32_t r = 0; r < b.o.rails; ++r) there += !b.nodes[b.hca(host, r)].gone;
        return there >= 3;
    }
    void take_host(std::uint32_t host) {
        host_claimed[host] = true;
        ++hosts_hit[group_of(host)];
    }
    /// A random sound HCA of the host, or none.
    std::uint32_t pick_hca(std::uint32_t host) {
        std::vector<std::uint32_t> out;
        for (std::uint32_t r = 0; r < b.o.rails; ++r)
            if (sound(b.hca(host, r))) out.push_back(b.hca(host, r));
        return out.empty() ? none : out[roll.below(out.size())];
    }
    /// The switch (of the first plane) and port that an HCA's cable leads to.
    cable& lead(std::uint32_t hca, std::uint32_t plane = 0) { return b.cables[b.hca_cable(hca, plane)]; }
};

std::string hex(guid id);
std::string end_text(const blueprint& b, std::uint32_t node, std::uint16_t port);

void plant_in_switches(planter& p);
void plant_in_hosts(planter& p);
void plant_in_links(planter& p);
/// Last: the reports of the others go by names.
void plant_in_names(planter& p);
/// What oddities::lost asks for: whole switches, chips and planes, and LIDs.
void plant_losses(planter& p);

}  // namespace banyan::topo::generate
