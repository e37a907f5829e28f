// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <random>

#include <banyan/topo/traffic.hpp>
#include <catch2/catch.hpp>

#include "../topo/fixtures.hpp"
#include "train/plan.hpp"

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;
using namespace banyan::train;

namespace {

plan example() {
    plan p;
    p.job = 77;
    p.generation = 3;
    p.restart = 1;
    p.shape = "tp=2,pp=2,dp=2";
    p.ranks_per_node = 2;
    p.nodes = {"n03", "n01", "n02", "n07"};
    p.addrs = {"127.0.1.3", "127.0.1.1", "127.0.1.2", "127.0.1.7"};
    p.spares = {"n09"};
    p.spare_addrs = {"127.0.1.9"};
    p.buddies = {2, 3, 0, 1};
    p.launchers = true;
    p.model = model_size{4096, 32, 8192, 16};
    p.later = better_later{60, 45};
    p.spread = "groups=g1:4 straddling-pp=0/2";
    return p;
}

}  // namespace

TEST_CASE("a plan comes back as it was written", "[topo]") {
    const auto p = example();
    const auto text = to_text(p);
    CHECK(text.find('\n') == std::string::npos);
    const auto again = parse_plan(text).value();
    CHECK(again.nodes == p.nodes);
    CHECK(again.addrs == p.addrs);
    CHECK(again.spares == p.spares);
    CHECK(again.spare_addrs == p.spare_addrs);
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
    auto p = example();
    SECTION("too few nodes") { p.nodes.pop_back(); }
    SECTION("buddy outside") { p.buddies[0] = 9; }
    SECTION("two copies in one place") { p.buddies[0] = 3; }
    SECTION("addresses missing") { p.addrs.pop_back(); }
    SECTION("unknown shape") { p.shape = "x=8"; }
    SECTION("no ranks") { p.ranks_per_node = 0; }
    SECTION("more than all is gained") { p.later->per_cent = 101; }
    CHECK_FALSE(parse_plan(to_text(p)));
}

TEST_CASE("a plan of another version is refused, and one without", "[topo]") {
    const auto text = to_text(example());
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
    const auto text = to_text(example());
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
    const auto text = to_text(example());
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
