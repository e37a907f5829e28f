// SPDX-License-Identifier: BSD-3-Clause
//
// The kinds of fabrics that real sites have: the truth agrees with what the text says, by the reader's plain
// records, and not by the model.
#include <map>
#include <set>

#include <banyan/topo/reader.hpp>
#include <catch2/catch.hpp>

#include "topo/generate/generate.hpp"

namespace test_generate_kinds {
using namespace banyan::topo;
using generate::duty;

namespace {

struct subject {
    explicit subject(const generate::options& o) {
        auto g = generate::generate(o);
        INFO((g ? "" : g.error().text()));
        REQUIRE(g);
        facts = std::move(g->facts);
        auto read = read_ibnetdiscover(g->text);
        REQUIRE(read);
        CHECK(read->complaints.empty());
        d = std::move(*read);
        for (const auto& n : d.nodes) {
            CHECK(nodes.emplace(n.id, &n).second);
            for (const auto& p : d.ports_of(n)) ports[n.id][p.port] = p;
        }
    }
    /// How many cables lead from a switch to others.
    std::size_t uplinks(guid id) const {
        std::size_t out = 0;
        for (const auto& [port, p] : ports.at(id)) out += p.peer_kind == node_kind::switch_node;
        return out;
    }
    std::vector<generate::true_other> others(duty what) const {
        std::vector<generate::true_other> out;
        for (const auto& t : facts.others)
            if (t.what == what) out.push_back(t);
        return out;
    }
    dump d;
    generate::truth facts;
    std::map<guid, const dump_node*> nodes;
    std::map<guid, std::map<std::uint16_t, dump_port>> ports;
};

generate::options shape(std::uint64_t seed, std::uint32_t rails = 4) {
    generate::options o;
    o.hosts = 48;
    o.group_size = 8;
    o.rails = rails;
    o.seed = seed;
    o.shuffle = true;
    return o;
}

generate::options of_kind(std::string_view kind, std::uint64_t seed, std::uint32_t rails = 4) {
    auto o = shape(seed, rails);
    REQUIRE(generate::add_kind(o, kind));
    return o;
}

/// "0x... port 3"
std::pair<guid, std::uint16_t> end_of(const std::string& text) {
    return {std::stoull(text, nullptr, 16),
            static_cast<std::uint16_t>(std::stoi(text.substr(text.rfind(' '))))};
}

}  // namespace

TEST_CASE("every kind can be had, with both ends of each cable and the truth's names", "[topo][generate]") {
    for (const auto kind : generate::kinds())
        for (std::uint64_t seed = 1; seed <= 6; ++seed) {
            INFO(kind << " seed " << seed);
            const subject s(of_kind(kind, seed));
            for (const auto& [id, lines] : s.ports)
                for (const auto& [port, p] : lines) {
                    REQUIRE(s.ports.contains(p.peer));
                    REQUIRE(s.ports.at(p.peer).contains(p.peer_port));
                    const auto& back = s.ports.at(p.peer).at(p.peer_port);
                    CHECK((back.peer == id && back.peer_port == port && back.rate == p.rate));
                }
            for (const auto& t : s.facts.hcas) CHECK(s.nodes.at(t.id)->name == t.name);
            for (const auto& t : s.facts.others) CHECK(s.nodes.at(t.id)->name == t.name);
            for (const auto& t : s.facts.switches) CHECK(s.nodes.at(t.id)->kind == node_kind::switch_node);
            CHECK(s.facts.hcas.size() + s.facts.others.size() + s.facts.switches.size() <= s.nodes.size());
            const bool loses = kind.starts_with("dead") || kind == "lost-plane" || kind == "no-lid";
            CHECK(s.facts.defects.empty() != loses);
        }
}

TEST_CASE("a storage switch has storage HCAs of several groups, a leaf those of one", "[topo][generate]") {
    for (const auto kind : {"storage-uplinks", "storage-spine", "storage-apart"})
        for (std::uint64_t seed = 1; seed <= 8; ++seed) {
            INFO(kind << " seed " << seed);
            const auto o = of_kind(kind, seed);
            const subject s(o);
            std::map<guid, std::set<std::uint32_t>> groups;  // of a storage switch
            std::map<std::string, std::uint32_t> host_group;
            for (const auto& h : s.facts.hosts) host_group[h.name] = h.group;
            const auto storage = s.others(duty::storage_hca);
            CHECK(storage.size() == std::size_t{o.hosts} * o.odd.storage.rails);
            for (const auto& t : storage)
                groups[s.ports.at(t.id).at(1).peer].insert(host_group.at(t.name.substr(0, t.name.find(' '))));
            for (const auto& [id, of] : groups) {
                CHECK(of.size() >= 2);
                CHECK((s.uplinks(id) == 0) == (o.odd.storage.up == generate::shared_storage::way::apart));
            }
            for (const auto& t : s.facts.hcas) CHECK_FALSE(groups.contains(s.ports.at(t.id).at(1).peer));
            CHECK(s.others(duty::storage_server).size() == 2 * o.odd.storage.servers);
        }
}

TEST_CASE("a dead spine or core is gone, and just the ports told are dark", "[topo][generate]") {
    for (const auto kind : {"dead-spine", "dead-core"})
        for (std::uint64_t seed = 1; seed <= 8; ++seed) {
            INFO(kind << " seed " << seed);
            auto o = of_kind(kind, seed);
            o.shuffle = false;  // so that the sound one has the same GUIDs
            const subject after(o);
            o.odd.lost = {};
            const subject before(o);
            CHECK(after.facts.defects.size() == before.nodes.size() - after.nodes.size());
            std::set<std::pair<guid, std::uint16_t>> told, dark;
            for (const auto& defect : after.facts.defects)
                for (const auto& where : defect.where)
                    if (where.contains("port")) told.insert(end_of(where));
            for (const auto& [id, lines] : before.ports)
                for (const auto& [port, p] : lines)
                    if (after.nodes.contains(id) && !after.ports.at(id).contains(port))
                        dark.emplace(id, port);
            CHECK(told == dark);
        }
}

TEST_CASE("a lost plane is one port of an HCA, a dead chip one of its box", "[topo][generate]") {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        const subject lost(of_kind("lost-plane", seed)), dead(of_kind("dead-chip", seed));
        std::size_t thinner = 0;
        for (const auto& t : lost.facts.hcas) thinner += lost.ports.at(t.id).size() == 3;
        CHECK(thinner == lost.facts.defects.size());
        thinner = 0;
        for (const auto& t : dead.facts.hcas) thinner += dead.ports.at(t.id).size() == 3;
        CHECK(thinner == 8);  // the hosts of the group
        std::map<guid, int> chips;
        for (const auto& t : dead.facts.switches) ++chips[dead.nodes.at(t.id)->system];
        CHECK(std::count_if(chips.begin(), chips.end(), [](const auto& c) { return c.second == 3; }) == 1);
    }
}

TEST_CASE("rings, DPUs and ports without LIDs are as told", "[topo][generate]") {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        const subject ring(of_kind("ring", seed)), dpus(of_kind("dpus", seed)), lids(of_kind("no-lid", seed));
        CHECK_FALSE(ring.facts.tree);
        for (const auto& t : ring.facts.switches) {
            std::set<guid> next;
            std::size_t hosts = 0;
            for (const auto& [port, p] : ring.ports.at(t.id))
                if (p.peer_kind == node_kind::switch_node)
                    next.insert(p.peer);
                else
                    ++hosts;
            CHECK(next.size() == 2);
            CHECK(hosts > 0);
        }
        std::set<guid> told;
        for (const auto& t : dpus.others(duty::dpu)) told.insert(t.id);
        for (const auto& [id, n] : dpus.nodes)
            CHECK((n->device >= 0xa2d2 && n->device <= 0xa2dc) == told.contains(id));
        REQUIRE(lids.facts.defects.size() == 1);
        const auto& without = lids.facts.defects[0].where;
        std::size_t found = 0;
        for (const auto& n : lids.d.nodes) found += n.lid == 65535;
        CHECK(found == without.size());
    }
}

TEST_CASE("kinds that are not known and shapes that cannot have them are refused", "[topo][generate]") {
    auto o = shape(1);
    const auto done = generate::add_kind(o, "dead-spin");
    REQUIRE_FALSE(done);
    CHECK(done.error().text().contains("dead-spine"));
    o.planes = 4;
    o.odd.dpus = 1;
    CHECK_FALSE(generate::generate(o));
    o = shape(1);
    o.odd.lost.chips = 1;
    CHECK_FALSE(generate::generate(o));
    o = shape(1);
    o.odd.names.format = "%h";
    CHECK_FALSE(generate::generate(o));
}

}  // namespace test_generate_kinds
