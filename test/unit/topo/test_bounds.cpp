// SPDX-License-Identifier: BSD-3-Clause
//
// Whatever a user asks for, placement answers after a bounded number of steps: slurmctld waits for it. Steps
// are counted, so that these tests do not depend on how fast the machine is.
#include <algorithm>
#include <numeric>
#include <set>

#include <banyan/topo/traffic.hpp>
#include <catch2/catch.hpp>

#include "fixtures.hpp"
#include "test/random_requests.hpp"
#include "topo/placement/communication.hpp"
#include "topo/placement/communication_graph.hpp"

namespace test_bounds {

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

request ask(const char* shape, std::uint32_t nodes, std::uint32_t each) {
    auto r = make_request(parse_shape(shape).value(), nodes, each, 0);
    INFO((r ? std::string() : r.error().text()));
    REQUIRE(r);
    return *r;
}

/// As weighted_cost says, from rank to rank and pair to pair.
double weigh_all_pairs(const fabric& f, const request& r, const placement& p) {
    const auto slots = ranks_of_slots(r);
    std::vector<std::uint32_t> host_of(r.dims.ranks());
    for (std::size_t s = 0; s < slots.size(); ++s)
        for (const auto rank : slots[s]) host_of[rank] = p.nodes[s];
    double out = 0;
    for (const auto d : all_dimensions)
        each_send(r, d, [&](std::uint32_t a, std::uint32_t b) {
            const auto t = tier_between(f, host_of[a], host_of[b]);
            out += weights_of(r)[d] * f.tier_cost[t];
        });
    return out;
}

void answer_requests(std::uint32_t each_fabric, std::uint32_t seed) {
    constexpr std::uint32_t hosts = 3000;
    for (const auto& [name, f] : fabrics_of_all_kinds(hosts)) {
        random_requests some(f, ++seed);
        for (std::uint32_t i = 0; i < each_fabric; ++i) {
            const auto q = some.next();
            INFO(name << ": " << q.text());
            work limit(most_work_of_placement);
            const auto p = place(f, q.from(), q.asked, limit);
            REQUIRE(p);
            // Whatever begins with a step left ends: at most what is linear in all that there is, some times
            // over.
            CHECK(limit.spent() <= most_work_of_placement + 100 * std::int64_t{hosts} +
                                       40 * static_cast<std::int64_t>(communication_graph::max_pairs));
            std::set<std::uint32_t> used(p->nodes.begin(), p->nodes.end());
            used.insert(p->spares.begin(), p->spares.end());
            CHECK(used.size() == q.asked.nodes + q.asked.spares);
            CHECK(std::includes(q.free.begin(), q.free.end(), used.begin(), used.end()));
            CHECK(std::set<std::uint32_t>(p->buddies.begin(), p->buddies.end()).size() == q.asked.nodes);
        }
    }
}
}  // namespace

TEST_CASE("any request on any fabric is answered within the steps allowed", "[topo]") {
    answer_requests(40, 0);
}

TEST_CASE("many requests on any fabric are answered within the steps allowed", "[.large]") {
    answer_requests(400, 1000);
}

TEST_CASE("without a step left there is still a placement, the same each time", "[topo]") {
    std::uint32_t seed = 100;
    for (const auto& [name, f] : fabrics_of_all_kinds(300)) {
        random_requests some(f, ++seed);
        for (int i = 0; i < 20; ++i) {
            const auto q = some.next();
            INFO(name << ": " << q.text());
            work nothing(0), nothing_again(0);
            const auto p = place(f, q.from(), q.asked, nothing);
            REQUIRE(p);
            CHECK(p->nodes == place(f, q.from(), q.asked, nothing_again)->nodes);
            CHECK(std::set<std::uint32_t>(p->nodes.begin(), p->nodes.end()).size() == q.asked.nodes);
        }
    }
}

TEST_CASE("what slots send grows with the nodes, not with the square of a group", "[topo]") {
    for (const auto& r : {ask("ep=8192", 8192, 1), ask("ep=12800", 12800, 1), ask("ep=1048576", 8192, 128),
                          ask("tp=8,ep=4096,pp=2", 8192, 8), ask("ep=64,dp=64", 4096, 1)}) {
        INFO(r.dims.text());
        const communication_graph graph(r, job_slots(r), weights_of(r));
        CHECK(graph.edges() > 0);
        CHECK(graph.edges() <= 2 * communication_graph::max_pairs + std::size_t{r.nodes} * 2 * 24);
    }
    // Those of a realistic size are exact: each of 512 slots and the 7 others of its group.
    const auto exact = ask("ep=8,dp=64", 512, 1);
    CHECK(communication_graph(exact, job_slots(exact), weights_of(exact)).edges() == 512 * 7 + 2 * 512);
}

TEST_CASE("edges that stand for others have their weight", "[topo]") {
    // All in bins of their own under one spine: the cost is the sum of all weights.
    const auto r = ask("ep=4096", 4096, 1);
    const communication_graph graph(r, job_slots(r), weights_of(r));
    REQUIRE(graph.edges() < 4096 * 4095);
    double sum = 0;
    for (std::uint32_t slot = 0; slot < r.nodes; ++slot)
        for (const auto& e : graph.of(slot)) sum += e.weight;
    // Each edge is there from both ends.
    CHECK(sum / 2 == Approx(weights_of(r)[dimension::ep] * 4096. * 4095));
}

TEST_CASE("counted by nodes or from rank to rank, a placement weighs the same", "[topo]") {
    std::uint32_t seed = 200;
    for (const auto& [name, f] : fabrics_of_all_kinds(40)) {
        random_requests some(f, ++seed);
        for (int i = 0; i < 40; ++i) {
            auto q = some.next();
            if (q.asked.dims.ranks() > 3000) continue;
            INFO(name << ": " << q.text());
            const auto p = place(f, q.from(), q.asked).value();
            const auto weight = weighted_cost(f, q.asked, p);
            CHECK(weight == Approx(weigh_all_pairs(f, q.asked, p)));
            CHECK(weight == Approx(cost_of(f, q.asked, p).weighted));
        }
    }
}

TEST_CASE("slots and units by arithmetic are those that one gets rank by rank", "[topo]") {
    const auto f = groups_of({40, 24});
    random_requests some(f, 300);
    for (int i = 0; i < 400; ++i) {
        const auto r = some.next().asked;
        if (r.dims.ranks() > 3000) continue;
        INFO(r.dims.text() << " on " << r.nodes);
        const job_slots job(r);
        const auto slots = ranks_of_slots(r);
        for (std::uint32_t s = 0; s < slots.size(); ++s) {
            REQUIRE(job.first_rank(s) == slots[s].front());
            for (const auto rank : slots[s]) REQUIRE(job.slot_of(rank) == s);
        }
        // Slots with neighbours in a tensor or pipeline group are in one unit, and no others.
        std::vector<std::uint32_t> unit(r.nodes);
        std::iota(unit.begin(), unit.end(), 0u);
        for (bool again = true; again;) {
            again = false;
            for (const auto d : {dimension::tp, dimension::pp})
                each_send(r, d, [&](std::uint32_t a, std::uint32_t b) {
                    auto &x = unit[job.slot_of(a)], &y = unit[job.slot_of(b)];
                    again |= x != y;
                    x = y = std::min(x, y);
                });
        }
        const auto units = units_of_slots(r);
        for (std::uint32_t a = 0; a < r.nodes; ++a)
            for (std::uint32_t b = 0; b < a; ++b) REQUIRE((units[a] == units[b]) == (unit[a] == unit[b]));
    }
}

TEST_CASE("groups of a million ranks", "[topo]") {
    const auto f = groups_of(std::vector<std::uint32_t>(400, 32), 16);
    // No node runs as many.
    CHECK(make_request(parse_shape("ep=1048576").value(), 8, 0, 0).error().what ==
          "ep=1048576 (1048576 ranks) on 8 nodes is 131072 ranks on each, more than 1024");
    auto r = ask("ep=1048576", 8192, 128);
    r.model = model_size{};
    const auto p = place(f, all_hosts(f), r).value();
    CHECK(p.nodes.size() == 8192);
    const auto c = cost_of(f, r, p);
    std::uint64_t pairs = 0;
    for (const auto n : c.dimensions.at(0).edges) pairs += n;
    CHECK(pairs == 1048576ull * 1048575);
    CHECK(weighted_cost(f, r, p) == Approx(c.weighted));
}

TEST_CASE("half of a large job is replaced, neighbours first", "[topo]") {
    const auto f = groups_of(std::vector<std::uint32_t>(400, 32), 16);
    placement before;
    std::vector<std::uint32_t> lost, others;
    for (std::uint32_t h = 0; h < f.hosts.size(); ++h) {
        (h % 2 ? others : before.nodes).push_back(h);
        if (h % 4 == 0) lost.push_back(h);
    }
    const auto after = swap(f, before, lost, others).value();
    for (std::size_t slot = 0; slot < before.nodes.size(); ++slot) {
        CHECK(f.hosts[after.nodes[slot]].leaf_group == f.hosts[before.nodes[slot]].leaf_group);
        CHECK((after.nodes[slot] == before.nodes[slot]) == (slot % 2 == 1));
    }
}

}  // namespace test_bounds
