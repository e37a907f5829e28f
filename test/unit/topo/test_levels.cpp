// SPDX-License-Identifier: BSD-3-Clause
//
// Levels on fabrics that are not clean: racks that are off, hosts on spines and cores. Against the truth of
// the generator, over random seeds.
#include <algorithm>
#include <map>

#include <banyan/topo/capacity.hpp>
#include <banyan/topo/placement.hpp>
#include <banyan/topo/reader.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"
#include "fixtures.hpp"
#include "topo/generate/generate.hpp"

namespace test_levels {

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

struct made {
    fabric f;
    generate::truth facts;
};

made make_fabric(const generate::options& o, bool named = true) {
    auto g = generate::generate(o).value();
    if (!named)
        for (const std::string kind : {"MF0;leaf-", "MF0;spine-", "MF0;core-"})
            for (std::size_t at = 0; (at = g.text.find(kind, at)) != std::string::npos;)
                g.text.replace(at, g.text.find('"', at) - at, "Quantum Mellanox Technologies");
    return {build_fabric(read_ibnetdiscover(std::move(g.text)).value()), std::move(g.facts)};
}

/// Kinds of defects that are there, but for what is told of every nameless switch.
std::map<std::string, std::size_t> kinds(const fabric& f) {
    std::map<std::string, std::size_t> out;
    for (const auto& d : f.defects)
        if (d.kind != "factory-name") ++out[d.kind];
    return out;
}

void check_levels(const made& m) {
    std::size_t off = 0, wrong = 0;
    for (const auto& t : m.facts.switches) {
        const auto at = std::lower_bound(m.f.switches.begin(), m.f.switches.end(), t.id,
                                         [](const switch_node& s, guid id) { return s.id < id; });
        REQUIRE(at != m.f.switches.end());
        if (at->level != t.level) {
            ++wrong;
            UNSCOPED_INFO(fmt::format("{} is at level {}, truly {}", at->name, at->level, t.level));
        }
        off += t.off;
    }
    CHECK(wrong == 0);
    auto found = kinds(m.f);
    CHECK(found["off"] == off);
    found.erase("off");
    for (const auto& [kind, n] : found) UNSCOPED_INFO(kind << " " << n);
    CHECK(found.empty());
}

generate::options options_of(std::uint64_t seed) {
    generate::options o;
    o.seed = seed;
    o.shuffle = true;
    o.group_size = 8 + static_cast<std::uint32_t>(seed * 7 % 9);
    o.hosts = o.group_size * (4 + static_cast<std::uint32_t>(seed % 5));
    o.rails = seed % 3 == 0 ? 1 : 4;
    if (seed % 2 == 1) {
        o.levels = 3;
        o.radix = 32;
        o.spine_group_size = 2;
        // Two pods at least that are not all off.
        o.hosts = o.group_size * (8 + static_cast<std::uint32_t>(seed % 5));
    }
    return o;
}

}  // namespace

TEST_CASE("racks that are off leave leaves, not cores", "[topo]") {
    const bool named = GENERATE(true, false);
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        auto o = options_of(seed);
        o.racks_off = 0.05 + 0.25 * static_cast<double>(seed % 7) / 6;
        INFO("seed " << seed << ", named " << named);
        const auto m = make_fabric(o, named);
        check_levels(m);
        CHECK(levels(m.f) == o.levels);
    }
}

TEST_CASE("hosts on spines and cores leave them spines and cores", "[topo]") {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        auto o = options_of(seed);
        const auto clean = make_fabric(o);
        o.gateways = 1 + static_cast<std::uint32_t>(seed % 4);
        if (o.levels == 3) o.core_hosts = static_cast<std::uint32_t>(seed % 3);
        INFO("seed " << seed);
        const auto m = make_fabric(o, seed % 2 == 0);
        check_levels(m);
        CHECK(m.f.leaf_groups.size() == clean.f.leaf_groups.size());
        CHECK(oversubscription(m.f) == oversubscription(clean.f));
        std::vector<std::uint32_t> groups, clean_groups;
        for (const auto& g : m.f.leaf_groups) groups.push_back(g.spine_group);
        for (const auto& g : clean.f.leaf_groups) clean_groups.push_back(g.spine_group);
        CHECK(groups == clean_groups);
    }
}

TEST_CASE("compute hosts on a spine stay hosts, and the spine a spine", "[topo]") {
    rail_fabric d(3, 8, 1, 4);
    for (unsigned i = 0; i < 3; ++i)
        d.link(d.add_hca(fmt::format("g9n{:02} mlx5_0", i)), 1, d.spines[1], 40 + i);
    const auto f = d.model();
    CHECK(f.defects.empty());
    CHECK(f.hosts.size() == 27);
    CHECK(levels(f) == 2);
    const auto on_spine = find_host(f, "g9n00"), other = find_host(f, "g0n00");
    REQUIRE(on_spine != none);
    CHECK(tier_between(f, on_spine, find_host(f, "g9n02")) == tier::leaf);
    CHECK(tier_between(f, on_spine, other) == tier::spine);
}

namespace {

std::string renamed(std::string text, const std::string& what, const std::string& with) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
        text.replace(at, what.size(), with);
    return text;
}

/// Without the leaf, its cables, and the HCAs that only it joined to the rest.
std::string without_leaf(const std::string& text, const std::string& leaf) {
    std::string out;
    const auto name = '"' + leaf + '"';
    for (std::size_t at = 0; at < text.size();) {
        auto end = text.find("\n\n", at);
        end = end == std::string::npos ? text.size() : end + 1;
        const auto record = text.substr(at, end - at);
        at = end;
        if (record.find("# " + name + " enhanced") != std::string::npos) continue;
        if (record.find("Ca\t") != std::string::npos && record.find(name) != std::string::npos) continue;
        for (std::size_t line = 0; line < record.size();) {
            const auto stop = std::min(record.find('\n', line), record.size() - 1) + 1;
            const auto words = record.substr(line, stop - line);
            line = stop;
            if (words.find(name) == std::string::npos) out += words;
        }
    }
    return out;
}

fabric built(const std::string& text) { return build_fabric(read_ibnetdiscover(text).value()); }

std::string kinds_text(const fabric& f) {
    std::string out;
    for (const auto& d : f.defects) out += d.kind + ' ' + d.objects.at(0) + ": " + d.evidence + '\n';
    return out;
}

}  // namespace

TEST_CASE("two ASICs of a director's card are two switches, planes of a box are one", "[topo]") {
    generate::options o;
    o.hosts = 48;
    o.group_size = 8;
    o.rails = 1;
    auto text = generate::generate(o).value().text;
    for (int i = 1; i <= 6; ++i)
        text = renamed(text, fmt::format("MF0;leaf-{:02}:MQM9790/U1", i),
                       fmt::format("MF0;dir1:CS8500/L{:02}/U{}", (i + 1) / 2, 2 - i % 2));
    for (int i = 1; i <= 8; ++i)
        text = renamed(text, fmt::format("MF0;spine-{:02}:MQM9790/U1", i),
                       fmt::format("MF0;dir1:CS8500/S{:02}/U{}", (i + 1) / 2, 2 - i % 2));
    const auto f = built(text);
    CHECK(f.leaf_groups.size() == 6);
    for (std::uint32_t i = 0; i < f.switches.size(); ++i) CHECK(f.switches[i].box == i);
    CHECK(kinds_text(f) == "");
    // The same without the card in the name: two ASICs of one box.
    const auto other = built(renamed(renamed(text, "CS8500/L", "L"), "CS8500/S", "S"));
    CHECK(other.leaf_groups.size() == 6);
    o.planes = 4;
    o.rate = "1xXDR";
    const auto planes = built(generate::generate(o).value().text);
    CHECK(planes.leaf_groups.size() == 6);
    CHECK(std::count_if(planes.switches.begin(), planes.switches.end(),
                        [](auto& s) { return s.plane == 3; }) > 6);
}

TEST_CASE("rails keep their numbers where a leaf before them is absent", "[topo]") {
    for (unsigned lost = 0; lost < 4; ++lost) {
        const auto f = built(without_leaf(rail_fabric(4, 8, 4, 4).text(), fmt::format("leaf-1-{}", lost)));
        INFO(kinds_text(f));
        CHECK(f.defects.size() == 1);
        for (const auto& h : f.hcas) {
            const auto device = static_cast<std::uint16_t>(h.name.back() - '0');
            CHECK(h.rail == device);
        }
        const auto tiers = capacity(f);
        REQUIRE(tiers[0].by_rail.size() == 4);
        for (unsigned r = 0; r < 4; ++r)
            CHECK(tiers[0].by_rail[r] == tiers[0].by_rail[(lost + 1) % 4] * (r == lost ? 0.75 : 1));
    }
}

TEST_CASE("a job goes to whole groups where it fits them", "[topo]") {
    for (unsigned degraded = 0; degraded < 3; ++degraded) {
        auto text = without_leaf(rail_fabric(3, 8, 4, 4).text(), fmt::format("leaf-{}-2", degraded));
        const auto f = built(text);
        const auto p = place(f, all_hosts(f), make("tp=4,pp=4,dp=4", 16));
        REQUIRE(p);
        INFO("group " << degraded);
        for (const auto h : p->nodes)
            CHECK(f.hosts[h].name.find(fmt::format("g{}n", degraded)) == std::string::npos);
    }
}

TEST_CASE("HCA-1 is mlx5_0, and numbers of another start are no crossed cables", "[topo]") {
    auto text = rail_fabric(3, 8, 4, 4).text();
    // One host named the other way, one whose numbers begin at 2.
    for (int r = 3; r >= 0; --r) {
        text = renamed(text, fmt::format("\"g1n02 mlx5_{}\"", r), fmt::format("\"g1n02 HCA-{}\"", r + 1));
        text = renamed(text, fmt::format("\"g1n03 mlx5_{}\"", r), fmt::format("\"g1n03 mlx5_{}\"", r + 2));
    }
    const auto f = built(text);
    CHECK(kinds_text(f) == "");
    for (const auto* name : {"g1n02", "g1n03"})
        for (std::size_t r = 0; r < 4; ++r) CHECK(f.hcas[f.hosts[find_host(f, name)].hcas[r]].rail == r);
}

TEST_CASE("names of two namings are not compared, but the order of devices", "[topo]") {
    auto text = rail_fabric(3, 8, 5, 4).text();
    const auto rename = [&](const std::string& host, int rail, const std::string& device) {
        text =
            renamed(text, fmt::format("\"{} mlx5_{}\"", host, rail), fmt::format("\"{} {}\"", host, device));
    };
    for (int r = 0; r < 4; ++r) {
        // The last HCA is called as everybody's, the others by where they sit; so between 8 and 13.
        rename("g0n01", r, fmt::format("ibp{}s0", 3 + 10 * r));
        rename("g1n02", r, fmt::format("ibP{}p1s0f{}", r / 2, r % 2));
        rename("g2n03", r, fmt::format("mlx4_{}", r));
        rename("g2n04", r, fmt::format("roceo{}", 3 * r + 1));
        rename("g2n05", r, fmt::format("ibx{:012x}", 0x42a103001000 + r));
    }
    const auto f = built(text);
    CHECK(kinds_text(f) == "");
    for (const auto* name : {"g0n01", "g1n02", "g2n03", "g2n04"})
        for (std::size_t r = 0; r < 5; ++r) CHECK(f.hcas[f.hosts[find_host(f, name)].hcas[r]].rail == r);
}

TEST_CASE("crossed cables are found by the order of predictable names", "[topo]") {
    rail_fabric d(2, 8, 4, 4);
    auto text = d.text();
    // 16 before 128 before domain 1: neither as text nor by the bus alone.
    const char* const devices[] = {"ibp16s0f0", "ibp128s0f0", "ibP1p2s0f0", "ibP1p2s0f1"};
    for (int r = 0; r < 4; ++r)
        text = renamed(text, fmt::format(" mlx5_{}\"", r), fmt::format(" {}\"", devices[r]));
    auto f = built(text);
    CHECK(kinds_text(f) == "");
    for (const auto& h : f.hosts)
        for (std::size_t r = 0; r < 4; ++r) CHECK(f.hcas[h.hcas[r]].name.ends_with(devices[r]));
    text = renamed(text, "\"g0n03 ibP1p2s0f0\"", "\"g0n03 x\"");
    text = renamed(text, "\"g0n03 ibP1p2s0f1\"", "\"g0n03 ibP1p2s0f0\"");
    text = renamed(text, "\"g0n03 x\"", "\"g0n03 ibP1p2s0f1\"");
    f = built(text);
    CHECK(std::count_if(f.defects.begin(), f.defects.end(),
                        [](const auto& x) { return x.kind == "swapped-cables"; }) == 1);
}

TEST_CASE("hosts that name their HCAs otherwise have no cable crossed", "[topo]") {
    generate::options o;
    o.hosts = 48;
    o.group_size = 16;
    o.rails = GENERATE(4u, 8u);
    o.storage_rail = GENERATE(true, false);
    o.mixed_names = GENERATE(0.1, 0.4);
    o.shuffle = true;
    o.seed = GENERATE(1u, 2u, 3u);
    const auto m = make_fabric(o);
    CHECK(kinds(m.f).empty());
    for (const auto& t : m.facts.hcas)
        for (const auto& h : m.f.hcas)
            if (h.id == t.id) CHECK(h.rail == t.rail);
}

TEST_CASE("a group of another kind of hosts lacks no leaf", "[topo]") {
    rail_fabric d(3, 8, 4, 4);
    const auto a = d.add_switch("leaf-9-0"), b = d.add_switch("leaf-9-1");
    for (unsigned s = 0; s < 4; ++s) {
        d.link(a, 33 + s, d.spines[s], 60);
        d.link(b, 33 + s, d.spines[s], 61);
    }
    for (unsigned h = 0; h < 8; ++h) {
        d.link(d.add_hca(fmt::format("g9n{:02} mlx5_0", h)), 1, a, h + 1);
        d.link(d.add_hca(fmt::format("g9n{:02} mlx5_1", h)), 1, b, h + 1);
    }
    CHECK(kinds_text(d.model()) == "");
}

TEST_CASE("both HCAs of a host on one leaf", "[topo]") {
    rail_fabric d(2, 8, 2, 4);
    d.forget(d.leaves[0][1], 3);
    d.link(d.hcas[0][2][1], 1, d.leaves[0][0], 20);
    auto text = d.text();
    // Names that give no numbers.
    for (const auto* device : {" mlx5_0", " mlx5_1"}) text = renamed(text, device, "");
    const auto f = built(text);
    const auto found = std::count_if(f.defects.begin(), f.defects.end(), [](const auto& x) {
        return x.kind == "same-leaf" && x.objects.at(0) == "g0n02";
    });
    INFO(kinds_text(f));
    CHECK(found == 1);
}

TEST_CASE("two links that claim one port, and where a router hangs", "[topo]") {
    rail_fabric d(2, 8, 1, 4);
    const auto router = d.add_router("rt1");
    d.link(d.spines[0], 50, router, 1);
    auto text = d.text();
    const auto f = built(text);
    REQUIRE(f.excluded.size() == 1);
    CHECK(f.excluded[0].why.find("spine-0 port 50") != std::string::npos);
    // The last HCA says that it is on the port of the first.
    d.link(d.hcas[1][7][0], 1, d.leaves[0][0], 1);
    d.link(d.hcas[0][0][0], 1, d.leaves[0][0], 1);
    d.forget(d.leaves[1][0], 8);
    const auto g = d.model();
    INFO(kinds_text(g));
    CHECK(std::count_if(g.defects.begin(), g.defects.end(),
                        [](const auto& x) { return x.kind == "doubled-port"; }) == 1);
}

TEST_CASE("two links of one port that stand far apart in its record", "[topo]") {
    rail_fabric d(2, 8, 1, 4);
    auto text = d.text();
    const auto other = d.add_hca("g0n08 mlx5_0");
    d.link(other, 1, d.leaves[0][0], 1);
    // Both HCAs and the leaf list both links, whose lines are the first and the last of the leaf's record.
    const auto both = d.text();
    const auto claim = both.find(fmt::format("[1]\t\"H-{:016x}\"", other));
    REQUIRE(claim != std::string::npos);
    const auto line = both.substr(claim, both.find('\n', claim) - claim + 1);
    const auto leaf = text.find(fmt::format("\"S-{:016x}\"\t\t#", d.leaves[0][0]));
    REQUIRE(leaf != std::string::npos);
    text.insert(text.find("\n\n", leaf) + 1, line);
    const auto record = both.find(fmt::format("\"H-{:016x}\"\t\t#", other));
    REQUIRE(record != std::string::npos);
    text +=
        both.substr(both.rfind("\n\n", record), both.find("\n\n", record) - both.rfind("\n\n", record) + 1);
    const auto f = built(text);
    INFO(kinds_text(f) << text);
    CHECK(std::count_if(f.defects.begin(), f.defects.end(),
                        [](const auto& x) { return x.kind == "doubled-port"; }) == 1);
}

TEST_CASE("hosts stand as people count, and groups keep their numbers when one goes", "[topo]") {
    dump_writer d;
    std::vector<guid> leaves;
    for (unsigned g = 0; g < 3; ++g) leaves.push_back(d.add_switch(fmt::format("leaf{}", g)));
    const auto spine = d.add_switch("spine");
    for (unsigned g = 0; g < 3; ++g) {
        d.link(leaves[g], 40, spine, g + 1);
        d.link(leaves[g], 41, spine, g + 11);
    }
    // lassen12 to lassen1: the first host is on the last leaf.
    for (unsigned h = 0; h < 12; ++h)
        d.link(d.add_hca(fmt::format("lassen{} mlx5_0", 12 - h)), 1, leaves[h / 4], h % 4 + 1);
    const auto f = d.model();
    REQUIRE(f.hosts.size() == 12);
    for (unsigned h = 0; h < 12; ++h) {
        CHECK(f.hosts[h].name == fmt::format("lassen{}", h + 1));
        CHECK(find_host(f, f.hosts[h].name) == h);
    }
    const auto id_of = [](const fabric& x, const std::string& host) {
        return x.leaf_groups[x.hosts[find_host(x, host)].leaf_group].id;
    };
    d.forget(leaves[2], 4);  // lassen1
    auto text = d.text();
    const auto at = text.find("# \"lassen1 mlx5_0\"");
    const auto start = text.rfind("vendid", at);
    text.erase(start, text.find("vendid", at) - start);
    const auto less = built(text);
    REQUIRE(less.hosts.size() == 11);
    for (unsigned h = 2; h <= 12; ++h) {
        const auto name = fmt::format("lassen{}", h);
        CHECK(id_of(less, name) == id_of(f, name));
    }
    CHECK(id_of(f, "lassen12") == "g1");
}

}  // namespace test_levels
