// SPDX-License-Identifier: BSD-3-Clause
#include "topo/readers/lldp_tree.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "topo/readers/name_tree.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {
namespace {

struct lldp_system {
    std::string_view name;
    std::uint32_t line = 0;
    std::string_view chassis;
    bool reported = false;  ///< its own output is in the text
    bool seen = false;      ///< another system has it as a neighbour
    bool is_switch = false;
    std::uint32_t level = none;             ///< of a switch: 0 has hosts
    std::vector<std::uint32_t> neighbours;  ///< indices, each once
    std::vector<std::string> nics;          ///< of a switch: "HOST INTERFACE" of each that leads to it
};

class lldp_tree {
  public:
    lldp_tree(const lldp_neighbours& told, dump& out) : told_(told), out_(out) {}

    result<void> read() {
        for (const auto& [name, line] : told_.reported) short_names_.insert(name);
        for (const auto& n : told_.all) short_names_.insert(n.name);
        for (const auto& [name, line] : told_.reported)
            systems_[system(known_as(name), line)].reported = true;
        for (const auto& n : told_.all) BANYAN_CHECK(join(n));
        for (auto& s : systems_) {
            std::sort(s.neighbours.begin(), s.neighbours.end());
            s.neighbours.erase(std::unique(s.neighbours.begin(), s.neighbours.end()), s.neighbours.end());
        }
        find_silent_switches();
        for (const auto& n : told_.all) find_nic(n);
        find_levels();
        name_tree tree(out_);
        for (const auto& s : systems_)
            if (s.level != none) add_to(tree, s);
        auto tops = unknown_above();
        const bool upper = !tops.empty();
        tree.join(std::move(tops), "the switches above");
        BANYAN_CHECK(tree.finish());
        out_.untold.upper = upper;
        out_.untold.rails = false;  // each interface is an HCA of its own
        return {};
    }

  private:
    std::uint32_t system(std::string_view name, std::uint32_t line) {
        const auto [at, fresh] = index_.try_emplace(name, static_cast<std::uint32_t>(systems_.size()));
        if (fresh) {
            systems_.emplace_back();
            systems_.back().name = name;
            systems_.back().line = line;
        }
        return at->second;
    }

    /// A system may announce itself with its domain and be asked without, or the other way round.
    std::string_view known_as(std::string_view name) const {
        const auto stem = name.substr(0, name.find('.'));
        return short_names_.contains(stem) ? stem : name;
    }

    result<void> join(const lldp_neighbour& n) {
        if (n.name.empty()) return {};
        named_.emplace(n.local, n.port);
        const auto a = system(known_as(n.local), n.line), b = system(known_as(n.name), n.line);
        if (a == b) return {};
        auto& peer = systems_[b];
        const bool is_switch = n.forwards.value_or(true) && !n.mac_port;
        if (is_switch && !peer.chassis.empty() && peer.chassis != n.chassis)
            return fail(errc::invalid_input,
                        fmt::format("line {}: two switches are called {}: {} and {}", n.line, peer.name,
                                    peer.chassis, n.chassis),
                        "give each switch a host name of its own");
        if (is_switch) peer.chassis = n.chassis;
        peer.is_switch |= is_switch;
        peer.seen = true;
        peer.neighbours.push_back(a);
        systems_[a].neighbours.push_back(b);
        return {};
    }

    /// A system that no other one has seen is a switch where most of its neighbours are hosts: a host may
    /// have a neighbour in it, such as its BMC.
    void find_silent_switches() {
        for (auto& s : systems_) {
            if (s.seen || s.is_switch) continue;
            const auto hosts = std::ranges::count_if(
                s.neighbours, [&](auto n) { return systems_[n].seen && !systems_[n].is_switch; });
            s.is_switch = 2 * hosts > std::ssize(s.neighbours);
        }
    }

    /// A host's own word of its NICs counts, where there is one: a switch has them by their descriptions.
    void find_nic(const lldp_neighbour& n) {
        // Beside a system its NIC may have an agent of its own.
        if (n.name.empty()) {
            if (!named_.contains({n.local, n.port}))
                complain(out_, n.line, 1,
                         fmt::format("the neighbour of {} on {} gives no name: does lldpd run there?",
                                     n.local, n.port));
            return;
        }
        const auto a = index_.at(known_as(n.local)), b = index_.at(known_as(n.name));
        auto &local = systems_[a], &peer = systems_[b];
        if (!local.is_switch && peer.is_switch)
            peer.nics.push_back(fmt::format("{} {}", local.name, n.port));
        else if (local.is_switch && !peer.is_switch && !peer.reported)
            local.nics.push_back(fmt::format("{} {}", peer.name, n.peer_port));
        else if (!local.is_switch && a != b)
            complain(out_, n.line, 1,
                     fmt::format("{} and {} are neighbours, and neither says that it is a switch; skipped",
                                 local.name, peer.name));
    }

    void find_levels() {
        std::vector<std::uint32_t> queue;
        for (const auto& s : systems_)
            if (!s.is_switch)
                for (const auto n : s.neighbours)
                    if (systems_[n].is_switch && systems_[n].level == none)
                        systems_[n].level = 0, queue.push_back(n);
        for (std::size_t at = 0; at < queue.size(); ++at)
            for (const auto n : systems_[queue[at]].neighbours)
                if (systems_[n].is_switch && systems_[n].level == none)
                    systems_[n].level = systems_[queue[at]].level + 1, queue.push_back(n);
    }

    /// Two switches of one level may be joined for their own purposes: no packet goes up there.
    void add_to(name_tree& tree, const lldp_system& s) const {
        std::vector<std::string> below;
        for (const auto n : s.neighbours)
            if (systems_[n].is_switch && systems_[n].level + 1 == s.level)
                below.emplace_back(systems_[n].name);
        tree.add(s.line, s.name, s.nics, std::move(below));
    }

    /// The topmost switches, where one of these has not told what stands above it: all are one network.
    std::vector<std::string> unknown_above() const {
        std::vector<std::string> tops;
        bool silent = false;
        for (const auto& s : systems_) {
            if (s.level == none) continue;
            if (std::any_of(s.neighbours.begin(), s.neighbours.end(),
                            [&](auto n) { return systems_[n].level != none && systems_[n].level > s.level; }))
                continue;
            tops.emplace_back(s.name);
            silent |= !s.reported;
        }
        if (!silent || tops.size() < 2) return {};
        return tops;
    }

    const lldp_neighbours& told_;
    dump& out_;
    std::map<std::string_view, std::uint32_t> index_;
    std::set<std::string_view> short_names_;  ///< all names; those with a domain do no harm
    std::set<std::pair<std::string_view, std::string_view>>
        named_;  ///< system and port with a named neighbour
    std::vector<lldp_system> systems_;
};

}  // namespace

result<void> read_lldp_tree(const lldp_neighbours& told, dump& out) { return lldp_tree(told, out).read(); }

}  // namespace banyan::topo
