// SPDX-License-Identifier: BSD-3-Clause
//
// What placement counts by arithmetic is what one gets rank by rank (test/every_rank.hpp), and what it
// chooses by that is the best there is, where all choices can be tried.
#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include <catch2/catch.hpp>

#include "fixtures.hpp"
#include "test/every_rank.hpp"
#include "test/random_requests.hpp"
#include "topo/placement/all_to_all.hpp"
#include "topo/placement/communication_graph.hpp"

namespace test_every_rank {

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

using sums = std::map<std::pair<std::uint32_t, std::uint32_t>, double>;

/// Any shape in any order on any nodes that it divides over: several stages or tensor groups on a node,
/// groups over several nodes, blocks that cut groups anywhere.
request some_job(std::mt19937& random, std::uint32_t most_ranks) {
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    for (;;) {
        auto dims = all_dimensions;
        std::shuffle(dims.begin(), dims.end(), random);
        shape s;
        for (std::uint32_t i = 0, used = 1 + below(5); i < used; ++i)
            s.order.push_back({dims[i], 1 + below(below(3) ? 6 : 16)});
        const auto ranks = s.ranks();
        if (ranks > most_ranks) continue;
        std::vector<std::uint32_t> each;
        for (std::uint32_t n = 1; n <= ranks; ++n)
            if (ranks % n == 0) each.push_back(n);
        const auto per_node = each[below(static_cast<std::uint32_t>(each.size()))];
        return make_request(s, ranks / per_node, per_node, 0).value();
    }
}

/// Least weight of all ways to give whole units to leaf groups.
double least_with_whole_units(const fabric& f, const std::vector<std::uint32_t>& free, const request& r,
                              std::uint32_t units) {
    const auto unit = r.nodes / units;
    const every_rank job(r);
    std::vector<std::vector<std::uint32_t>> hosts(f.leaf_groups.size());
    for (const auto h : free) hosts[f.hosts[h].leaf_group].push_back(h);
    const auto unit_of = units_of_slots(r);
    double least = std::numeric_limits<double>::max();
    std::vector<std::uint32_t> count(hosts.size());
    const auto weigh = [&] {
        std::vector<std::uint32_t> group_of_unit;
        for (std::uint32_t g = 0; g < hosts.size(); ++g)
            group_of_unit.insert(group_of_unit.end(), count[g], g);
        auto left = hosts;
        placement p;
        for (const auto u : unit_of) {
            auto& from = left[group_of_unit[u]];
            p.nodes.push_back(from.back());
            from.pop_back();
        }
        least = std::min(least, job.on(f, p).weighted);
    };
    const std::function<void(std::size_t, std::uint32_t)> go = [&](std::size_t g, std::uint32_t left) {
        if (g == hosts.size()) {
            if (left == 0) weigh();
            return;
        }
        for (count[g] = 0; count[g] * unit <= hosts[g].size() && count[g] <= left; ++count[g])
            go(g + 1, left - count[g]);
        count[g] = 0;
    };
    go(0, units);
    return least;
}

constexpr model_size small_on_long_sequences{512, 8, 65536, 64};

}  // namespace

TEST_CASE("an edge weighs what all ranks of its slots send, exactly", "[topo]") {
    std::mt19937 random(14);
    for (int i = 0; i < 1500; ++i) {
        const auto r = some_job(random, 600);
        INFO(r.dims.text() << " with " << r.ranks_per_node << " ranks a node");
        const auto sent = every_rank(r).between_slots();
        const job_slots job(r);
        for (const auto d : all_dimensions) {
            traffic one{};
            one[d] = 1;
            sums expected;
            for (const auto& [slots, sends] : sent)
                if (sends[d] > 0) expected[slots] = static_cast<double>(sends[d]);
            if (d == dimension::ep && all_to_all(job.cut(), d).pairs() > communication_graph::max_pairs)
                continue;
            communication_graph graph(r, job, one);
            sums found;
            for (std::uint32_t slot = 0; slot < r.nodes; ++slot)
                for (const auto& e : graph.of(slot))
                    if (e.to > slot && e.weight > 0) found[{slot, e.to}] += e.weight;
            REQUIRE(found == expected);
        }
    }
}

TEST_CASE("edges that stand for others have their weight, however the blocks lie", "[topo]") {
    std::mt19937 random(15);
    for (int i = 0; i < 1000; ++i) {
        const auto r = some_job(random, 600);
        if (r.dims.size(dimension::ep) < 2) continue;
        INFO(r.dims.text() << " with " << r.ranks_per_node << " ranks a node");
        const blocks cut(r);
        const all_to_all members(cut, dimension::ep);
        for (const bool sampled : {false, true}) {
            std::uint64_t sum = 0;
            members.each(sampled, [&](std::uint32_t, std::uint32_t, std::uint64_t ranks) { sum += ranks; });
            std::uint64_t expected = 0;
            for (const auto& [slots, sends] : every_rank(r).between_slots()) expected += sends[dimension::ep];
            REQUIRE(2 * sum == expected);
        }
    }
}

TEST_CASE("objective, cost and spread of a placement are those of its ranks", "[topo]") {
    std::mt19937 random(17);
    auto f = groups_of(std::vector<std::uint32_t>(12, 12), 3);
    for (std::uint32_t g = 6; g < 12; ++g) f.leaf_groups[g].island = 1;
    f.wan.push_back({0, 1, 800});
    f.tier_cost = {0, 0, 1, 3, 50};
    const auto all = all_hosts(f);
    for (int i = 0; i < 300; ++i) {
        auto r = some_job(random, 600);
        if (r.nodes > all.size()) continue;
        if (i % 2) r.model = model_size{};
        if (i % 4 == 1) r.model->cp = cp_scheme::all_to_all;
        INFO(r.dims.text() << " with " << r.ranks_per_node << " ranks a node");
        auto nodes = all;
        if (i % 3) std::shuffle(nodes.begin(), nodes.end(), random);
        placement p;
        p.nodes.assign(nodes.begin(), nodes.begin() + r.nodes);
        const auto expected = every_rank(r).on(f, p);
        const auto cost = cost_of(f, r, p);
        CHECK(cost.weighted == Approx(expected.weighted));
        CHECK(weighted_cost(f, r, p) == Approx(expected.weighted));
        for (const auto t : all_tiers) CHECK(cost.bytes[t] == Approx(expected.bytes[t]));
        std::uint32_t spread = 0;
        for (const auto& d : cost.dimensions) spread = std::max(spread, d.largest_spread);
        if (r.dims.ranks() > 1) CHECK(spread == expected.spread);
        const auto sits = spread_of(f, r, p);
        CHECK(sits.units == expected.units);
        CHECK(sits.straddling_units == expected.straddling);
        if (all_to_all(blocks(r), dimension::ep).pairs() > communication_graph::max_pairs) continue;
        const auto bins = make_bins(f, {all, {}, {}});
        std::vector<std::uint32_t> bin_of_slot;
        for (const auto h : p.nodes) bin_of_slot.push_back(f.hosts[h].leaf_group);
        const communication_graph graph(r, job_slots(r), weights_of(r));
        CHECK(graph.objective(bin_distances(f, bins.bins), bin_of_slot) == Approx(expected.weighted));
    }
}

TEST_CASE("pipelines of several stages a node stay whole where they send most", "[topo]") {
    const auto f = groups_of({8, 8});
    auto r = make("tp=4,pp=4,dp=8", 16);
    REQUIRE(r.ranks_per_node == 8);
    r.model = small_on_long_sequences;
    const auto sent = every_rank(r).on(f, place(f, all_hosts(f), r).value());
    CHECK(sent.straddling == 0);
    // Each of the 16 rings leaves either group once, with 2 * 7/8 of its parameters in bf16.
    CHECK(sent.above_leaf() == 168. * (1 << 20));
    CHECK(sent.above_leaf() == 16 * 2 * traffic_of(r.dims, *r.model)[dimension::dp]);
}

TEST_CASE("one pipeline of several stages a node is cut where all but one fit", "[topo]") {
    const auto f = groups_of({8, 8});
    auto free = all_hosts(f);
    std::erase(free, 3u);
    std::erase(free, 12u);
    for (const auto* shape : {"tp=4,pp=4,dp=7", "tp=2,pp=8,dp=7", "tp=1,pp=16,dp=7"}) {
        INFO(shape);
        auto r = make(shape, 14);
        r.model = small_on_long_sequences;
        CHECK(every_rank(r).on(f, place(f, free, r).value()).straddling == 1);
    }
    // Data parallel peers share a node: a pipeline is four nodes, and one of three is cut.
    auto r = make("tp=4,dp=6,pp=4", 12);
    r.model = small_on_long_sequences;
    std::erase(free, 4u);
    std::erase(free, 13u);
    CHECK(every_rank(r).on(f, place(f, free, r).value()).straddling == 1);
}

TEST_CASE("never more bytes than with whole units, whatever the choice of them", "[topo]") {
    std::mt19937 random(18);
    int tried = 0;
    for (int i = 0; i < 400; ++i) {
        std::vector<std::uint32_t> sizes(2 + random() % 5);
        for (auto& s : sizes) s = 1 + random() % 9;
        auto f = groups_of(sizes, 2);
        f.tier_cost = {0, 0, 1, 1.0 + static_cast<double>(random() % 9), 50};
        if (random() % 3 == 0)
            for (std::uint32_t g = 4; g < sizes.size(); ++g) f.leaf_groups[g].island = 1;
        f.wan.push_back({0, 1, 800});
        const auto per_node = 1u << random() % 4, unit = 1 + static_cast<std::uint32_t>(random() % 3),
                   units = 2 + static_cast<std::uint32_t>(random() % 5);
        shape s;
        if (random() % 2)
            s.order = {
                {dimension::tp, 8 / per_node}, {dimension::pp, unit * per_node}, {dimension::dp, units}};
        else
            s.order = {
                {dimension::tp, 8 / per_node}, {dimension::dp, units * per_node}, {dimension::pp, unit}};
        const auto r = make_request(s, unit * units, 8, 0).value();
        const auto free = all_hosts(f);
        if (free.size() < r.nodes) continue;
        INFO(r.dims.text() << " on groups of "
                           << Catch::StringMaker<std::vector<std::uint32_t>>::convert(sizes));
        const auto least = least_with_whole_units(f, free, r, units);
        if (least == std::numeric_limits<double>::max()) continue;
        ++tried;
        CHECK(every_rank(r).on(f, place(f, free, r).value()).weighted <= least * (1 + 1e-9));
    }
    CHECK(tried > 100);
}

}  // namespace test_every_rank
