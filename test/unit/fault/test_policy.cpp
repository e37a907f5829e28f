// SPDX-License-Identifier: BSD-3-Clause
//
// What each kind of fault asks for, and what holds it back.
#include <catch2/catch.hpp>

#include "fault/incident/engine.hpp"
#include "fault/policy/policy.hpp"
#include "test/unit/fault/lines.hpp"

using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

incident after(std::initializer_list<const char*> rests) {
    engine e;
    std::uint64_t number = 0;
    for (const auto* rest : rests) number = e.absorb(event_of(gpu_line(3, rest)), 1'000'000).number;
    return *e.find(number);
}

step_kind step_after(std::initializer_list<const char*> rests) { return rule_for(after(rests)).step; }

}  // namespace

TEST_CASE("the rules, line by line", "[fault]") {
    CHECK(step_after({"79, x"}) == step_kind::node_out);
    for (const char* never : {"13, x", "31, x", "43, x", "45, x", "63, x", "92, x", "94, x"}) {
        CAPTURE(never);
        CHECK(step_after({never}) == step_kind::none);
        CHECK(step_after({never, never, never}) == step_kind::none);
    }
    CHECK(step_after({"4711, x"}) == step_kind::alert);
    CHECK(step_after({"149, x"}) == step_kind::alert);
    CHECK(step_after({"74, x"}) == step_kind::alert);
    CHECK(step_after({"48, x"}) == step_kind::drain);
    CHECK(step_after({"48, x", "63, x"}) == step_kind::drain);
    CHECK(step_after({"64, x"}) == step_kind::drain);
    CHECK(step_after({"119, x"}) == step_kind::drain);
    CHECK(step_after({"95, x"}) == step_kind::drain);
}

TEST_CASE("the driver's verdict decides by its number", "[fault]") {
    CHECK(step_after({"154, from 0x0 (None) to 0x0 (None)"}) == step_kind::none);
    CHECK(step_after({"154, from 0x0 (None) to 0x1 (PF FLR)"}) == step_kind::drain);
    CHECK(step_after({"154, from 0x0 (None) to 0x2 (OS Reboot)"}) == step_kind::node_out);
    CHECK(step_after({"154, from 0x0 (None) to 0x4 (Drain and Reset)"}) == step_kind::drain);
    CHECK(step_after({"154, from 0x0 (None) to 0x77 (New)"}) == step_kind::alert);
    CHECK(step_after({"154, cut in the middle"}) == step_kind::alert);
    CHECK(step_after({"149, x", "154, from 0x0 (None) to 0x2 (Node Reboot Required)"}) ==
          step_kind::node_out);
}

TEST_CASE("fabric faults leave nodes and jobs alone", "[fault]") {
    incident i;
    i.object.kind = object_kind::link;
    CHECK(rule_for(i).step == step_kind::alert);
    i.object.kind = object_kind::hca;
    CHECK(rule_for(i).step == step_kind::seal);
}

TEST_CASE("age, boot, rate and breaker hold back", "[fault]") {
    const auto i = after({"79, x"});
    const std::int64_t now = i.line_ms + 1000;
    limiter fresh({});
    CHECK(fresh.decide(i, true, 100, now).allowed);
    CHECK_FALSE(fresh.decide(i, false, 100, now).allowed);
    CHECK_FALSE(fresh.decide(i, true, 100, now + 11 * 60'000).allowed);

    limiter hourly({.drains_per_hour = 2});
    hourly.count(now - 10 * 60'000);
    CHECK(hourly.decide(i, true, 100, now).allowed);
    hourly.count(now - 9 * 60'000);
    CHECK_FALSE(hourly.decide(i, true, 100, now).allowed);
    limiter yesterday({.drains_per_hour = 1});
    yesterday.count(now - 3'700'000);
    CHECK(yesterday.decide(i, true, 100, now).allowed);
}

TEST_CASE("the breaker opens at half of the nodes and stays open", "[fault]") {
    const auto i = after({"79, x"});
    const std::int64_t now = i.line_ms + 1000;
    limiter l({.drains_per_hour = 1000});
    for (int n = 0; n < 7; ++n) l.count(now - 1000);
    CHECK(l.decide(i, true, 16, now).allowed);
    l.count(now - 1000);
    CHECK_FALSE(l.decide(i, true, 16, now).allowed);
    CHECK(l.tripped());
    CHECK_FALSE(l.decide(i, true, 1'000'000, now).allowed);
    l.trip(false);
    CHECK(l.decide(i, true, 1'000'000, now).allowed);
}
