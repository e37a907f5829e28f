// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <random>

#include <banyan/topo/traffic.hpp>
#include <catch2/catch.hpp>

#include "../topo/fixtures.hpp"
#include "train/admin_comment.hpp"
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
    CHECK_FALSE(parse_plan(to_text(p)));
}

TEST_CASE("a plan of another version is refused, and one without", "[topo]") {
    const auto text = to_text(example());
    const auto head = text.find("\"version\":2");
    REQUIRE(head != std::string::npos);
    auto later = text, none = text;
    later[head + 10] = '3';
    none[head + 1] = 'V';
    CHECK(parse_plan(later).error().what.find("version 3") != std::string::npos);
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

TEST_CASE("the AdminComment line, and back", "[topo]") {
    const auto f = groups_of({8, 8});
    auto r = make("tp=2,pp=2,dp=4", 9, 1);
    const auto p = place(f, all_hosts(f), r).value();
    const auto line = admin_comment(r, spread_of(f, r, p), {"n009"});
    CHECK(line == "banyan: tp=2,pp=2,dp=4 nodes=8 ranks=16 spares=1(n009) groups=g1:8 straddling-pp=0/4");
    const auto back = parse_admin_comment(line).value();
    CHECK(back.shape == "tp=2,pp=2,dp=4");
    CHECK(back.nodes == 8);
    CHECK(back.ranks == 16);
    CHECK(back.tasks == 16);
    CHECK(back.spares == std::vector<std::string>{"n009"});
    CHECK_FALSE(back.model);
    SECTION("only what the shape has straddles") {
        const auto flat = make("tp=2,dp=4", 4, 0);
        const auto placed = place(f, all_hosts(f), flat).value();
        CHECK(admin_comment(flat, spread_of(f, flat, placed), {}).ends_with(" groups=g1:4"));
        auto wide = make("tp=16,dp=2", 4, 0);
        const auto wider = place(f, all_hosts(f), wide).value();
        CHECK(admin_comment(wide, spread_of(f, wide, wider), {}).ends_with(" groups=g1:4 straddling-tp=0/2"));
        wide.launchers = true;
        const auto launched = admin_comment(wide, spread_of(f, wide, wider), {});
        CHECK(launched.find(" ranks=32 tasks=4 ") != std::string::npos);
        CHECK(parse_admin_comment(launched)->tasks == 4);
    }
    r.model = parse_model("hidden=4096,layers=32").value();
    const auto with_model = admin_comment(r, spread_of(f, r, p), {});
    CHECK(with_model.ends_with(" model=hidden=4096,layers=32,seq=8192,micro=16"));
    CHECK(parse_admin_comment(with_model)->model->hidden == 4096);
    CHECK_FALSE(parse_admin_comment(with_model + "x"));
    const auto waiting = admin_comment(r, spread_of(f, r, p), {}, better_later{60, 45});
    CHECK(waiting.ends_with(" waiting=60m:-45%"));
    CHECK(parse_admin_comment(waiting)->later->minutes == 60);
    CHECK(parse_admin_comment(waiting)->later->per_cent == 45);
    for (const auto* bad : {"60", "60m:-145%", "m:-45%", "60m:-45"})
        CHECK_FALSE(parse_admin_comment(line + " waiting=" + bad));
    CHECK(parse_admin_comment("a note by the admin").error().code == errc::not_found);
    CHECK(parse_admin_comment("banyan: broken").error().code == errc::not_found);
}

TEST_CASE("ranks that a launcher can number", "[topo]") {
    for (const auto* shape : {"tp=8,dp=4", "tp=4,pp=2,dp=4", "dp=32", "tp=16,dp=2"})
        CHECK(ranks_are_consecutive(make_request(parse_shape(shape).value(), 4, 8, 0).value()));
    const auto apart = make_request(parse_shape("dp=4,tp=8").value(), 4, 8, 0).value();
    CHECK(ranks_of_slots(apart)[0][1] == 4);
    CHECK_FALSE(ranks_are_consecutive(apart));
}

TEST_CASE("the AdminComment line with other spares", "[topo]") {
    const std::string line = "banyan: dp=4 nodes=4 ranks=4 spares=2(n[05-06]) groups=g1:6";
    CHECK(with_spares(line, {"n06"}) == "banyan: dp=4 nodes=4 ranks=4 spares=1(n06) groups=g1:6");
    CHECK(with_spares(line, {}) == "banyan: dp=4 nodes=4 ranks=4 spares=0 groups=g1:6");
    CHECK(with_spares("a note", {"n06"}) == "a note");
}
