// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <banyan/topo/traffic.hpp>
#include <catch2/catch.hpp>

#include "fixtures.hpp"

namespace test_placement {

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

std::vector<std::uint32_t> some_free(const fabric& f, double occupied, std::mt19937& random) {
    std::vector<std::uint32_t> out;
    std::uniform_real_distribution<double> dice(0, 1);
    for (std::uint32_t h = 0; h < f.hosts.size(); ++h)
        if (dice(random) >= occupied) out.push_back(h);
    return out;
}

/// The fewest straddling units that any choice of whole units allows: units of one size, so it is bin
/// filling.
std::uint32_t fewest_straddling(const fabric& f, const std::vector<std::uint32_t>& free, std::uint32_t units,
                                std::uint32_t unit_size) {
    std::map<std::uint32_t, std::uint32_t> in_group;
    for (const auto h : free) ++in_group[f.hosts[h].leaf_group];
    std::uint32_t whole = 0;
    for (const auto& [group, n] : in_group) whole += n / unit_size;
    return whole >= units ? 0 : units - whole;
}

void check_sound(const fabric& f, const std::vector<std::uint32_t>& free, const request& r,
                 const placement& p) {
    REQUIRE(p.nodes.size() == r.nodes);
    REQUIRE(p.spares.size() == r.spares);
    std::set<std::uint32_t> used(p.nodes.begin(), p.nodes.end());
    used.insert(p.spares.begin(), p.spares.end());
    CHECK(used.size() == r.nodes + r.spares);
    CHECK(std::includes(free.begin(), free.end(), used.begin(), used.end()));
    std::set<std::uint32_t> buddies(p.buddies.begin(), p.buddies.end());
    CHECK(buddies.size() == r.nodes);
    if (r.nodes > 1)
        for (std::uint32_t s = 0; s < r.nodes; ++s) CHECK(p.buddies[s] != s);
    (void)f;
}

/// A small model on long sequences, whose pipelines send more than its rings.
constexpr model_size pipelines_first{512, 4, 65536, 64};

}  // namespace

TEST_CASE("random jobs on random fabrics: sound, deterministic, no pipeline cut that sends most", "[topo]") {
    std::mt19937 random(7);
    const char* const shapes[] = {"tp=2,pp=2,dp=4", "tp=2,dp=4,pp=2", "pp=3,dp=4",
                                  "dp=6",           "tp=4,pp=4,dp=2", "dp=5,pp=2"};
    int placed = 0;
    for (int round = 0; round < 600; ++round) {
        std::vector<std::uint32_t> sizes(1 + random() % 6);
        for (auto& s : sizes) s = 1 + random() % 12;
        const auto f = groups_of(sizes, 2);
        const auto free = some_free(f, 0.1 * static_cast<double>(random() % 8), random);
        const auto dims = parse_shape(shapes[random() % std::size(shapes)]).value();
        const auto per_node = dims.ranks() % 2 == 0 && random() % 2 ? 2u : 1u;
        const auto spares = static_cast<std::uint32_t>(random() % 3);
        auto r = make_request(dims, dims.ranks() / per_node + spares, per_node, spares).value();
        r.model = pipelines_first;
        const auto p = place(f, free, r);
        if (free.size() < r.nodes + r.spares) {
            CHECK(p.error().code == errc::exhausted);
            continue;
        }
        ++placed;
        INFO(dims.text() << " on " << free.size() << " free of " << f.hosts.size());
        REQUIRE(p);
        check_sound(f, free, r, *p);
        CHECK(place(f, free, r)->nodes == p->nodes);
        const auto units = units_of_slots(r);
        const auto unit_count = *std::max_element(units.begin(), units.end()) + 1;
        const auto s = spread_of(f, r, *p);
        // Two cuts under one spine may be cheaper than one over the core, but none are cheaper than any.
        const auto fewest = fewest_straddling(f, free, unit_count, r.nodes / unit_count);
        CHECK((s.straddling_units == 0) == (fewest == 0));
        auto flat = f;
        for (auto& g : flat.leaf_groups) g.spine_group = 0;
        CHECK(spread_of(flat, r, place(flat, free, r).value()).straddling_units <= fewest);
        // The same nodes arranged again break no more units.
        auto again = arrange(f, p->nodes, r).value();
        CHECK(spread_of(f, r, again).straddling_units <= s.straddling_units);
    }
    CHECK(placed > 200);
}

TEST_CASE("the tightest leaf group that holds all of it", "[topo]") {
    const auto f = groups_of({12, 8, 10});
    const auto r = make("tp=1,pp=2,dp=4", 8);
    const auto p = place(f, all_hosts(f), r).value();
    CHECK(spread_of(f, r, p).groups == decltype(spread::groups){{"g2", 8}});
}

TEST_CASE("a spare next to the job is worth a looser group", "[topo]") {
    const auto f = groups_of({12, 8, 10});
    const auto r = make("pp=2,dp=4", 9, 1);
    const auto p = place(f, all_hosts(f), r).value();
    CHECK(spread_of(f, r, p).groups == decltype(spread::groups){{"g3", 8}});
    CHECK(f.hosts[p.spares[0]].leaf_group == 2);
}

TEST_CASE("without room beside the job the spare is in the nearest group", "[topo]") {
    const auto f = groups_of({8, 8, 8, 8}, 2);  // g1,g2 and g3,g4 under one spine each
    auto free = all_hosts(f);
    std::erase_if(free, [&](auto h) { return f.hosts[h].leaf_group == 0 && h % 8 >= 4; });
    std::erase_if(free, [&](auto h) { return f.hosts[h].leaf_group == 1; });
    const auto r = make("pp=2,dp=4", 9, 1);
    const auto p = place(f, free, r).value();
    CHECK(spread_of(f, r, p).groups.size() == 1);
    CHECK(spread_of(f, r, p).groups[0].first == "g3");
    CHECK(f.hosts[p.spares[0]].leaf_group == 3);
}

TEST_CASE("two groups share evenly, in whole units", "[topo]") {
    const auto f = groups_of({8, 8});
    auto r = make("pp=2,dp=6", 12);
    r.model = pipelines_first;
    const auto s = spread_of(f, r, place(f, all_hosts(f), r).value());
    CHECK(s.groups == decltype(spread::groups){{"g1", 6}, {"g2", 6}});
    CHECK(s.straddling_units == 0);
}

TEST_CASE("copies go to the other leaf group", "[topo]") {
    const auto f = groups_of({8, 8});
    const auto r = make("pp=2,dp=6", 12);
    const auto p = place(f, all_hosts(f), r).value();
    for (std::uint32_t slot = 0; slot < 12; ++slot)
        CHECK(f.hosts[p.nodes[slot]].leaf_group != f.hosts[p.nodes[p.buddies[slot]]].leaf_group);
}

TEST_CASE("copies leave the failure domain where they can", "[topo]") {
    // Racks of two hosts across the leaf groups: g1 and g2 have one host each in every rack.
    auto f = groups_of({6, 6});
    for (std::uint32_t h = 0; h < 12; ++h) f.hosts[h].failure_domains = {"rack=" + std::to_string(h % 6)};
    const auto r = make("pp=2,dp=6", 12);
    const auto p = place(f, all_hosts(f), r).value();
    check_sound(f, all_hosts(f), r, p);
    for (std::uint32_t slot = 0; slot < 12; ++slot) {
        const auto &own = f.hosts[p.nodes[slot]], &buddy = f.hosts[p.nodes[p.buddies[slot]]];
        CHECK(own.failure_domains != buddy.failure_domains);
        CHECK(own.leaf_group != buddy.leaf_group);
    }
}

TEST_CASE("a unit straddles only where nothing holds it whole", "[topo]") {
    const auto f = groups_of({3, 3, 3});
    auto r = make("pp=2,dp=4", 8);
    r.model = pipelines_first;
    const auto s = spread_of(f, r, place(f, all_hosts(f), r).value());
    CHECK(s.units == 4);
    CHECK(s.straddling_units == 1);
}

TEST_CASE("preferred nodes are taken first", "[topo]") {
    const auto f = groups_of({8, 8});
    const std::vector<std::uint32_t> prefer{9, 12, 14, 15};
    const auto r = make("pp=2,dp=2", 4);
    const auto p = place(f, all_hosts(f), r, prefer).value();
    CHECK(std::set<std::uint32_t>(p.nodes.begin(), p.nodes.end()) ==
          std::set<std::uint32_t>(prefer.begin(), prefer.end()));
}

TEST_CASE("hosts without a leaf group are used last and never crash", "[topo]") {
    auto f = groups_of({4, 4});
    for (std::uint32_t h = 0; h < 4; ++h) f.hosts[h].leaf_group = none;
    const auto p = place(f, all_hosts(f), make("pp=2,dp=2", 4)).value();
    for (const auto h : p.nodes) CHECK(h >= 4);
    CHECK(place(f, all_hosts(f), make("dp=8", 8)));
}

TEST_CASE("a job stays on an island that holds it", "[topo]") {
    // On the first island a unit of four must straddle, on both together none would.
    auto f = groups_of({5, 3, 4}, 2);
    f.leaf_groups[2].island = 1;
    f.wan.push_back({0, 1, 800});
    const auto r = make("tp=1,pp=4,dp=2", 8);
    const auto p = place(f, all_hosts(f), r).value();
    for (const auto h : p.nodes) CHECK(h < 8);

    // A larger one has to leave it; no unit that one of them holds is cut.
    auto larger = make("tp=1,pp=4,dp=3", 12);
    larger.model = pipelines_first;
    const auto both = place(f, all_hosts(f), larger).value();
    CHECK(spread_of(f, larger, both).straddling_units == 1);
    // Without a line there is no way.
    f.wan.clear();
    CHECK(place(f, all_hosts(f), larger).error().code == errc::exhausted);
    CHECK(place(f, all_hosts(f), r));

    // Of two that hold it, the one where it crosses least.
    auto two = groups_of({4, 4, 8}, 2);
    two.leaf_groups[2].island = 1;
    CHECK(spread_of(two, r, place(two, all_hosts(two), r).value()).groups ==
          decltype(spread::groups){{"g3", 8}});
}

TEST_CASE("rings stay whole where they send more than pipelines", "[topo]") {
    const auto f = groups_of({4, 4});
    auto r = make("tp=1,pp=2,dp=4", 8);
    // As those of usual models do.
    const auto p = place(f, all_hosts(f), r).value();
    check_sound(f, all_hosts(f), r, p);
    CHECK(spread_of(f, r, p).straddling_units == 4);
    // A small model on long sequences: its pipelines send more.
    r.model = pipelines_first;
    CHECK(spread_of(f, r, place(f, all_hosts(f), r).value()).straddling_units == 0);
}

TEST_CASE("never more bytes than what suits another model, or than in name order", "[topo]") {
    std::mt19937 random(8);
    const char* const shapes[] = {"pp=2,dp=4", "dp=4,pp=2", "pp=3,dp=4", "dp=6", "cp=2,pp=2,dp=3"};
    int better = 0;
    for (int round = 0; round < 300; ++round) {
        std::vector<std::uint32_t> sizes(2 + random() % 6);
        for (auto& s : sizes) s = 1 + random() % 8;
        auto f = groups_of(sizes, 2);
        if (random() % 3 == 0) f.leaf_groups.back().island = 1;
        f.wan.push_back({0, 1, 800});
        const auto free = some_free(f, 0.1 * static_cast<double>(random() % 5), random);
        const auto dims = parse_shape(shapes[random() % std::size(shapes)]).value();
        const auto spares = static_cast<std::uint32_t>(random() % 3);
        auto r = make_request(dims, dims.ranks() + spares, 1, spares).value();
        if (free.size() < r.nodes + r.spares) continue;
        r.model = pipelines_first;
        const auto whole_units = place(f, free, r).value();
        r.model = model_size{};
        INFO(dims.text() << " on " << Catch::StringMaker<std::vector<std::uint32_t>>::convert(sizes)
                         << Catch::StringMaker<std::vector<std::uint32_t>>::convert(free)
                         << f.leaf_groups.back().island);
        const auto weigh = [&](const placement& p) { return cost_of(f, r, p).weighted; };
        const auto whole = weigh(whole_units);
        const auto p = place(f, free, r).value();
        check_sound(f, free, r, p);
        CHECK(weigh(p) <= whole * (1 + 1e-9));
        better += weigh(p) < whole * (1 - 1e-9);
        const placement in_name_order{{free.begin(), free.begin() + r.nodes}, {}, {}};
        CHECK(weigh(p) <= weigh(in_name_order) * (1 + 1e-9));
    }
    CHECK(better > 20);
}

TEST_CASE("by a model's bytes a few stages of some pipelines share a leaf group", "[topo]") {
    // Whole rings fill three groups of ten each, and every pipeline crosses at every stage; whole pipelines
    // make each ring leave all groups. Five pipelines of two stages in a group send less than either.
    const auto f = groups_of(std::vector<std::uint32_t>(40, 10), 40);
    auto r = make_request(parse_shape("tp=2,dp=120,pp=8").value(), 240, 8, 0).value();
    r.model = model_size{};
    const auto free = all_hosts(f);
    placement by_name;
    by_name.nodes.assign(free.begin(), free.begin() + 240);
    const auto p = place(f, free, r).value();
    CHECK(weighted_cost(f, r, p) < 0.75 * weighted_cost(f, r, by_name));
    // Each slot once, in either direction of a tile.
    auto nodes = p.nodes;
    std::sort(nodes.begin(), nodes.end());
    CHECK(std::adjacent_find(nodes.begin(), nodes.end()) == nodes.end());
}

}  // namespace test_placement
