// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <random>

#include <banyan/topo/traffic.hpp>
#include <catch2/catch.hpp>

#include "../topo/fixtures.hpp"
#include "test/unit/train/example_plan.hpp"

namespace test_plan {

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;
using namespace banyan::train;
using banyan::train::test::example_plan;

TEST_CASE("a plan comes back as it was written", "[topo]") {
    auto p = example_plan();
    p.launchers = true;
    const auto text = to_text(p);
    CHECK(text.find('\n') == std::string::npos);
    const auto again = parse_plan(text).value();
    CHECK(again.nodes == p.nodes);
    CHECK(again.addrs == p.addrs);
    CHECK(again.spares == p.spares);
    CHECK(again.spare_addrs == p.spare_addrs);
    CHECK(again.former == p.former);
    CHECK(again.former_addrs == p.former_addrs);
    CHECK(again.buddies == p.buddies);
    CHECK(again.job == 77);
    CHECK(again.generation == 3);
    CHECK(again.restart == 1);
    CHECK(again.launchers);
    CHECK(again.model->hidden == 4096);
    CHECK(again.later->minutes == 60);
    CHECK(again.later->per_cent == 45);
    CHECK(again.spread == p.spread);
    CHECK(to_text(again) == text);
}

TEST_CASE("a plan that contradicts itself is refused", "[topo]") {
    auto p = example_plan();
    SECTION("too few nodes") { p.nodes.pop_back(); }
    SECTION("buddy outside") { p.buddies[0] = 9; }
    SECTION("two copies in one place") { p.buddies[0] = 3; }
    SECTION("addresses missing") { p.addrs.pop_back(); }
    SECTION("an address of an earlier run's node missing") { p.former_addrs.pop_back(); }
    SECTION("unknown shape") { p.shape = "x=8"; }
    SECTION("no ranks") { p.ranks_per_node = 0; }
    SECTION("more than all is gained") { p.later->per_cent = 101; }
    CHECK_FALSE(parse_plan(to_text(p)));
}

TEST_CASE("a plan of a later run names the nodes of the earlier ones", "[topo]") {
    const auto before = example_plan();
    plan next;
    next.nodes = {"n20", "n21", "n22", "n23"};
    next.restart = before.restart;
    // Placed once more before it started: nobody ran where it was placed first.
    CHECK(former_after(before, next) == before.former);
    next.restart = before.restart + 1;
    CHECK(former_after(before, next) ==
          std::vector<std::string>{"n03", "n01", "n02", "n07", "n09", "n05", "n11"});
    next.nodes.resize(1);
    CHECK(former_after(before, next) == std::vector<std::string>{"n03", "n01"});
}

TEST_CASE("a plan of another version is refused, and one without", "[topo]") {
    const auto text = to_text(example_plan());
    const auto head = text.find("\"version\":3");
    REQUIRE(head != std::string::npos);
    auto later = text, none = text;
    later[head + 10] = '4';
    none[head + 1] = 'V';
    CHECK(parse_plan(later).error().what.find("version 4") != std::string::npos);
    CHECK_FALSE(parse_plan(none));
}

TEST_CASE("buddies that follow a stride take no room, and any order comes back", "[topo]") {
    plan p;
    p.shape = "dp=4096";
    p.ranks_per_node = 1;
    for (std::uint32_t i = 0; i < 4096; ++i) {
        p.nodes.push_back("n" + std::to_string(i));
        p.buddies.push_back((i + 2048) % 4096);
    }
    CHECK(to_text(p).find("[2048,4096]") != std::string::npos);
    CHECK(parse_plan(to_text(p)).value().buddies == p.buddies);
    std::mt19937 random(5);
    std::shuffle(p.buddies.begin(), p.buddies.end(), random);
    CHECK(parse_plan(to_text(p)).value().buddies == p.buddies);
}

TEST_CASE("runs of buddies that do not give every slot one are refused", "[topo]") {
    const auto text = to_text(example_plan());
    const std::string runs = "[2,4]";
    REQUIRE(text.find(runs) != std::string::npos);
    for (const std::string bad : {"[2,3]", "[2,5]", "[2,4294967296]", "[2,18446744073709551615]", "[2,4,0,1]",
                                  "[2]", "[4,4]", "[0,1,3,1,0,2]", "[2,-4]", "[]", "7"}) {
        auto changed = text;
        changed.replace(text.find(runs), runs.size(), bad);
        INFO(bad);
        CHECK_FALSE(parse_plan(changed));
    }
}

TEST_CASE("plans that were changed at random never crash the parser", "[topo]") {
    const auto text = to_text(example_plan());
    std::mt19937 random(3);
    int refused = 0;
    for (int i = 0; i < 20000; ++i) {
        auto changed = text;
        for (int k = 0; k < 3; ++k) changed[random() % changed.size()] = static_cast<char>(random());
        refused += !parse_plan(changed.substr(0, random() % (changed.size() + 1)));
    }
    CHECK(refused > 10000);
}

TEST_CASE("ranks that a launcher can number", "[topo]") {
    for (const auto* shape : {"tp=8,dp=4", "tp=4,pp=2,dp=4", "dp=32", "tp=16,dp=2"})
        CHECK(ranks_are_consecutive(make_request(parse_shape(shape).value(), 4, 8, 0).value()));
    const auto apart = make_request(parse_shape("dp=4,tp=8").value(), 4, 8, 0).value();
    CHECK(ranks_of_slots(apart)[0][1] == 4);
    CHECK_FALSE(ranks_are_consecutive(apart));
}

}  // namespace test_plan
