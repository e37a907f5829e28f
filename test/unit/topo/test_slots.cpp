// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "fixtures.hpp"

namespace test_slots {

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

const char* const shapes[] = {"tp=2,pp=2,dp=4",      "tp=8,dp=4,pp=2", "tp=4,dp=8,pp=2",
                              "dp=4,tp=4,pp=2",      "pp=4,dp=8",      "dp=32",
                              "tp=2,cp=2,ep=2,dp=8", "pp=8,tp=2,dp=4", "dp=2,pp=3,tp=4,cp=2"};

}  // namespace

TEST_CASE("every rank is in exactly one slot, slots are full and ordered", "[topo]") {
    for (const auto* text : shapes)
        for (const std::uint32_t per_node : {1u, 2u, 4u, 8u}) {
            const auto dims = parse_shape(text).value();
            if (dims.ranks() % per_node) continue;
            INFO(text << " with " << per_node);
            const auto r = make_request(dims, dims.ranks() / per_node, per_node, 0).value();
            const auto slots = ranks_of_slots(r);
            REQUIRE(slots.size() == r.nodes);
            std::set<std::uint32_t> seen;
            for (std::size_t i = 0; i < slots.size(); ++i) {
                CHECK(slots[i].size() == per_node);
                CHECK(std::is_sorted(slots[i].begin(), slots[i].end()));
                if (i) CHECK(slots[i - 1].front() < slots[i].front());
                seen.insert(slots[i].begin(), slots[i].end());
            }
            CHECK(seen.size() == dims.ranks());
        }
}

TEST_CASE("tensor parallel groups stay in a node wherever they fit", "[topo]") {
    for (const auto* text : shapes)
        for (const std::uint32_t per_node : {2u, 4u, 8u}) {
            const auto dims = parse_shape(text).value();
            if (dims.ranks() % per_node || per_node % dims.size(dimension::tp)) continue;
            INFO(text << " with " << per_node);
            const auto r = make_request(dims, dims.ranks() / per_node, per_node, 0).value();
            const auto slots = ranks_of_slots(r);
            std::vector<std::uint32_t> slot_of(dims.ranks());
            for (std::uint32_t s = 0; s < slots.size(); ++s)
                for (const auto rank : slots[s]) slot_of[rank] = s;
            for (std::uint32_t a = 0; a < dims.ranks(); ++a)
                for (std::uint32_t b = 0; b < dims.ranks(); ++b) {
                    auto x = dims.coordinates(a), y = dims.coordinates(b);
                    x[0] = y[0] = 0;
                    if (x == y) CHECK(slot_of[a] == slot_of[b]);
                }
        }
}

TEST_CASE("consecutive ranks share a node where that suffices", "[topo]") {
    const auto slots = ranks_of_slots(make("tp=2,pp=2,dp=4", 8));
    CHECK(slots[3] == std::vector<std::uint32_t>{6, 7});
    // Data parallel innermost: consecutive ranks would cut every tensor group, so ranks are regrouped.
    const auto strided = ranks_of_slots(make("dp=4,tp=2", 4));
    CHECK(strided[0] == std::vector<std::uint32_t>{0, 4});
}

TEST_CASE("a unit is a pipeline group, whatever the rank order", "[topo]") {
    CHECK(units_of_slots(make("tp=2,pp=2,dp=4", 8)) == std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2, 3, 3});
    // Megatron's own order has the pipeline outermost: slot 0 and slot 4 exchange activations.
    CHECK(units_of_slots(make("tp=2,dp=4,pp=2", 8)) == std::vector<std::uint32_t>{0, 1, 2, 3, 0, 1, 2, 3});
    CHECK(units_of_slots(make("tp=2,dp=8", 8)) == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("numbers that do not fit come with one that does", "[topo]") {
    const auto dims = parse_shape("tp=2,pp=2,dp=4").value();
    CHECK(make_request(dims, 9, 2, 1).value().nodes == 8);
    CHECK(make_request(dims, 9, 2, 0).error().hint == "ask for -N 8");
    CHECK(make_request(dims, 8, 2, 1).error().hint == "ask for -N 9 (spares included)");
    CHECK(make_request(dims, 1, 0, 1).error().what.find("leave none") != std::string::npos);
    CHECK_FALSE(make_request(dims, 5, 0, 0));
    CHECK_FALSE(make_request(dims, 8, 3, 0));
}

}  // namespace test_slots
