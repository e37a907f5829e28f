// SPDX-License-Identifier: BSD-3-Clause
//
// The communication graph is what the ranks send, and its distances are those of the hosts.
#include <map>
#include <utility>

#include <banyan/topo/traffic.hpp>
#include <catch2/catch.hpp>

#include "fixtures.hpp"
#include "test/random_requests.hpp"
#include "topo/placement/communication.hpp"
#include "topo/placement/communication_graph.hpp"
#include "topo/placement/locations.hpp"

namespace test_communication {

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;

TEST_CASE("with a rank on each node the graph has an edge for whoever sends", "[topo]") {
    for (const auto* text : {"dp=2", "dp=7", "tp=2,pp=4,dp=3", "cp=3,ep=5,pp=2", "dp=4,ep=6", "pp=2,tp=3"})
        for (const bool to_all : {false, true}) {
            INFO(text << (to_all ? ", cp to all" : ""));
            const auto dims = parse_shape(text).value();
            auto r = make_request(dims, dims.ranks(), 1, 0).value();
            if (to_all) r.model = model_size{8192, 80, 8192, 16, cp_scheme::all_to_all};
            using pair = std::pair<std::uint32_t, std::uint32_t>;
            std::map<pair, double> sent, found;
            for (const auto d : all_dimensions)
                each_send(r, d, [&](std::uint32_t from, std::uint32_t to) {
                    sent[std::minmax(from, to)] += weights_of(r)[d];
                });
            const communication_graph graph(r, job_slots(r), weights_of(r));
            for (std::uint32_t slot = 0; slot < r.nodes; ++slot)
                for (const auto& e : graph.of(slot))
                    if (e.to > slot) found[{slot, e.to}] += e.weight;
            CHECK(found == sent);
        }
}

TEST_CASE("bins are as far from each other as their hosts", "[topo]") {
    for (const auto& [name, f] : fabrics_of_all_kinds(300)) {
        INFO(name);
        const auto all = all_hosts(f);
        const auto free = make_bins(f, {all, {}, {}});
        const bin_distances distance(f, free.bins);
        const slot_locations at(f, all);
        for (std::uint32_t a = 0; a < free.bins.size(); ++a)
            for (std::uint32_t b = 0; b < free.bins.size(); ++b) {
                const auto x = free.bins[a].hosts.front(), y = free.bins[b].hosts.back();
                REQUIRE(distance(a, b) == f.tier_cost[tier_between(f, x, y)]);
                REQUIRE(at.between(x, y) == tier_between(f, x, y));
            }
    }
}

}  // namespace test_communication
