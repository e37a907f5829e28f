// SPDX-License-Identifier: BSD-3-Clause
//
// Fabrics of every kind that the generator knows: of a sound one nothing is wrong, and of one with a spine
// off just that.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"
#include "topo/generate/generate.hpp"

namespace test_sound {

using namespace banyan::topo;
using namespace banyan::topo::test;
using generate::options;

namespace {

struct dice {
    explicit dice(std::uint64_t seed) : engine(seed) {}
    std::uint32_t from(std::uint32_t low, std::uint32_t high) {
        return low + static_cast<std::uint32_t>(engine() % (high - low + 1));
    }
    bool one_in(std::uint32_t n) { return from(1, n) == 1; }
    std::mt19937_64 engine;
};

options shape_of(dice& roll) {
    options o;
    o.seed = roll.from(1, 1'000'000);
    o.group_size = roll.from(4, 16);
    o.hosts = o.group_size * roll.from(3, 8);
    o.rails = roll.from(1, 8);
    o.radix = roll.one_in(2) ? 32 : 64;
    o.shuffle = roll.one_in(2);
    o.sharp = roll.one_in(3);
    o.oversubscription = roll.one_in(3) ? 2 : 1;
    switch (roll.from(0, 4)) {
        case 0:
            o.rail_only = true;
            o.rails = roll.from(3, 8);
            break;
        case 1:
            o.dragonfly = true;
            o.spine_group_size = roll.from(1, 2);
            break;
        case 2:
            o.levels = 3;
            o.spine_group_size = roll.from(1, 3);
            break;
        default:
            break;
    }
    if (roll.one_in(3)) o.planes = 4, o.rate = "1xXDR";
    if (o.planes == 1 && roll.one_in(4)) o.directors = true;
    return o;
}

/// What sites have beside their compute hosts.
void furnish(options& o, dice& roll) {
    o.ufm_hosts = roll.one_in(2) ? roll.from(1, 2) : 0;
    if (!o.rail_only && roll.one_in(3)) o.storage_servers = roll.from(1, 6);
    if (!o.rail_only && o.rails >= 3 && roll.one_in(3)) o.storage_rail = true;
    if (o.rails > 1 && roll.one_in(4)) o.gateways = roll.from(1, 6);
    if (o.levels == 3 && o.rails > 1 && roll.one_in(4)) o.core_hosts = roll.from(1, 3);
    if (roll.one_in(4)) o.routers = roll.from(1, 4);
    if (roll.one_in(4)) o.mixed_names = 0.3;
    if (roll.one_in(4)) o.racks_off = 0.25;
}

std::string made(const options& o) {
    auto g = generate::generate(o);
    INFO((g ? "" : g.error().text()));
    REQUIRE(g);
    return std::move(g->text);
}

/// But for what is told of nodes without a name, and of what is off.
std::vector<defect> faults_of(const fabric& f) {
    std::vector<defect> out;
    for (const auto& d : f.defects)
        if (!is_notice(d) && d.kind != "factory-name") out.push_back(d);
    return out;
}

std::string words_of(const options& o) {
    return fmt::format(
        "hosts {} group {} rails {} levels {} spine group {} radix {} over {} planes {}{}{}{}{}{} ufm {} oss "
        "{}{} "
        "gw {} core hosts {} routers {} mixed {} off {} seed {}",
        o.hosts, o.group_size, o.rails, o.levels, o.spine_group_size, o.radix, o.oversubscription, o.planes,
        o.rail_only ? " rail-only" : "", o.dragonfly ? " dragonfly" : "", o.directors ? " directors" : "",
        o.sharp ? " sharp" : "", o.shuffle ? " shuffled" : "", o.ufm_hosts, o.storage_servers,
        o.storage_rail ? " storage rail" : "", o.gateways, o.core_hosts, o.routers, o.mixed_names,
        o.racks_off, o.seed);
}

std::size_t leaves_below(const fabric& f, std::uint32_t sw) {
    std::set<std::uint32_t> out;
    for (const auto& l : f.links)
        for (const auto& [low, high] : {std::pair(l.a, l.b), std::pair(l.b, l.a)})
            if (high.kind == node_kind::switch_node && high.index == sw &&
                low.kind == node_kind::switch_node && f.switches[low.index].level == 0)
                out.insert(low.index);
    return out.size();
}

/// The fabric without a switch, all chips of it.
fabric without(const std::string& text, const fabric& sound, std::uint32_t box) {
    auto d = read_ibnetdiscover(text).value();
    const auto gone = [&](guid id) {
        const auto at = std::ranges::lower_bound(sound.switches, id, {}, &switch_node::id);
        return at != sound.switches.end() && at->id == id && at->box == box;
    };
    const auto old = std::move(d.ports);
    d.ports.clear();
    std::erase_if(d.nodes, [&](auto& n) { return gone(n.id); });
    for (auto& n : d.nodes) {
        const auto first = static_cast<std::uint32_t>(d.ports.size());
        for (auto i = n.first_port; i < n.first_port + n.port_count; ++i)
            if (!gone(old[i].peer)) d.ports.push_back(old[i]);
        n.first_port = first;
        n.port_count = static_cast<std::uint32_t>(d.ports.size()) - first;
    }
    // What was in it, or on it alone, is gone with it.
    std::erase_if(d.nodes, [](auto& n) { return n.port_count == 0; });
    return build_fabric(d);
}

}  // namespace

TEST_CASE("of a sound fabric nothing is wrong", "[topo]") {
    std::size_t wrong = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        dice roll(seed);
        auto o = shape_of(roll);
        furnish(o, roll);
        const auto found = faults_of(build_fabric(read_ibnetdiscover(made(o)).value()));
        if (found.empty()) continue;
        ++wrong;
        UNSCOPED_INFO(seed << ": " << words_of(o));
        for (std::size_t i = 0; i < found.size() && i < 3; ++i)
            UNSCOPED_INFO("  " << found[i].kind << " " << found[i].objects.at(0) << ": "
                               << found[i].evidence);
    }
    CHECK(wrong == 0);
}

TEST_CASE("of a fabric with a spine off just that is wrong", "[topo]") {
    std::size_t wrong = 0, tried = 0;
    for (std::uint64_t seed = 1; tried < 100; ++seed) {
        dice roll(seed + 1000);
        auto o = shape_of(roll);
        // Of no fewer can the last be told from one that was never bought.
        o.spines = roll.from(4, 6);
        o.links = roll.from(1, 2);
        auto g = generate::generate(o);
        if (!g) continue;
        const auto sound = build_fabric(read_ibnetdiscover(g->text).value());
        // Neither end of a leaf's row of spines, and none that one leaf alone has.
        const auto& group =
            sound.leaf_groups[roll.from(0, static_cast<std::uint32_t>(sound.leaf_groups.size()) - 1)];
        const auto leaf = group.leaves[roll.from(0, static_cast<std::uint32_t>(group.leaves.size()) - 1)];
        std::map<std::uint16_t, std::uint32_t> row;
        for (const auto& l : sound.links)
            for (const auto& [low, high] : {std::pair(l.a, l.b), std::pair(l.b, l.a)})
                if (low.kind == node_kind::switch_node && low.index == leaf &&
                    high.kind == node_kind::switch_node)
                    row[low.port] = sound.switches[high.index].box;
        const auto dead = std::next(row.begin(), roll.from(1, o.spines - 2) * o.links)->second;
        if (leaves_below(sound, dead) < 2) continue;
        const auto found = faults_of(without(g->text, sound, dead));
        ++tried;
        if (found.size() == 1 && found[0].kind == "missing-switch") continue;
        ++wrong;
        UNSCOPED_INFO(seed << ": without " << sound.switches[dead].name << " ; " << words_of(o));
        for (std::size_t i = 0; i < found.size() && i < 3; ++i)
            UNSCOPED_INFO("  " << found[i].kind << " " << found[i].objects.at(0) << ": "
                               << found[i].evidence);
    }
    CHECK(wrong == 0);
}

}  // namespace test_sound
