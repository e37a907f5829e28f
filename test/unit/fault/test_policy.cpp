// SPDX-License-Identifier: BSD-3-Clause
//
// What each kind of fault asks for, and what holds it back.
#include <catch2/catch.hpp>

#include "fault/catalog/xid.hpp"
#include "fault/incident/engine.hpp"
#include "fault/policy/limiter.hpp"
#include "fault/policy/policy_file.hpp"
#include "test/unit/fault/lines.hpp"

namespace test_policy {

using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

incident after(std::initializer_list<const char*> rests) {
    engine e;
    std::uint64_t number = 0;
    for (const auto* rest : rests) number = e.absorb(event_of(gpu_line(3, rest)), 1'000'000).number;
    return *e.find(number);
}

incident of_node(incident i, const std::string& node) {
    i.object.node = node;
    return i;
}

decision rule_for(const incident& i) { return shipped_policy().decide(i); }

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

TEST_CASE("what a rule counts is as old as the newest of it", "[fault]") {
    auto i = after({"94, x"});
    i.seen = {i.line_ms, i.line_ms + 40 * 60'000};
    const decision drain{step_kind::drain, true, "twice", false, "r"};
    const std::int64_t now = i.seen.back() + 1000;
    limiter fresh({});
    CHECK(fresh.narrow(drain, i, true, 100, now).allowed);
    const auto late = limiter({}).narrow(drain, i, true, 100, now + 11 * 60'000);
    CHECK_FALSE(late.allowed);
    CHECK(late.why == "the line is 661 s old");
    // A line of a time before does not make it older.
    i.line_ms = now;
    CHECK(limiter({}).narrow(drain, i, true, 100, now + 9 * 60'000).allowed);
}

TEST_CASE("age, boot and rate hold back", "[fault]") {
    const auto i = after({"79, x"});
    const std::int64_t now = i.line_ms + 1000;
    limiter fresh({});
    CHECK(fresh.narrow(rule_for(i), i, true, 100, now).allowed);
    for (const bool current : {false, true}) {
        const auto held = fresh.narrow(rule_for(i), i, current, 100, current ? now + 11 * 60'000 : now);
        CHECK_FALSE(held.allowed);
        CHECK_FALSE(held.later);
    }
    limiter hourly({.drains_per_hour = 2});
    hourly.count("n91", now - 10 * 60'000);
    CHECK(hourly.narrow(rule_for(i), i, true, 100, now).allowed);
    const auto next = of_node(i, "n92");
    const auto full = hourly.narrow(rule_for(next), next, true, 100, now);
    CHECK_FALSE(full.allowed);
    CHECK(full.later);
    hourly.returned("n91");
    CHECK(hourly.narrow(rule_for(next), next, true, 100, now).allowed);
    limiter yesterday({.drains_per_hour = 1});
    yesterday.count("n91", now - 3'700'000);
    CHECK(yesterday.narrow(rule_for(i), i, true, 100, now).allowed);
    limiter none({.drains_per_hour = 0});
    CHECK_FALSE(none.narrow(rule_for(i), i, true, 4096, now).allowed);
}

TEST_CASE("a node counts once, however many of its parts break", "[fault]") {
    const auto i = after({"79, x"});
    limiter l({.drains_per_hour = 2});
    for (int n = 0; n < 5; ++n) CHECK(l.narrow(rule_for(i), i, true, 100, i.line_ms + n).allowed);
    CHECK(l.taken_since(0) == 1);
    CHECK(l.narrow(rule_for(of_node(i, "n92")), of_node(i, "n92"), true, 100, i.line_ms).allowed);
}

TEST_CASE("what is held back may be done later, for a day", "[fault]") {
    auto i = after({"79, x"});
    limiter l({.drains_per_hour = 1, .drains_percent = 0});
    l.count("n91", i.line_ms + 500);
    CHECK(l.narrow(rule_for(i), i, true, 100, i.line_ms + 1000).later);
    i.held_ms = i.line_ms + 1000;
    CHECK(l.narrow(rule_for(i), i, true, 100, i.line_ms + 30 * 60'000).later);
    CHECK(l.narrow(rule_for(i), i, true, 100, i.line_ms + 61 * 60'000).allowed);
    limiter other({});
    const auto late = other.narrow(rule_for(i), i, true, 100, i.line_ms + 25 * 3'600'000);
    CHECK_FALSE(late.allowed);
    CHECK_FALSE(late.later);
}

TEST_CASE("the breaker opens in a cluster of any size, before the limit of an hour alone would hold",
          "[fault]") {
    const auto i = after({"79, x"});
    const std::int64_t now = i.line_ms + 1000;
    struct row {
        std::uint32_t nodes, at, an_hour;
    };
    for (const auto& [nodes, at, an_hour] :
         {row{4, 3, 8}, row{16, 8, 8}, row{18, 8, 8}, row{400, 8, 8}, row{1000, 20, 20}, row{4096, 81, 81}}) {
        CAPTURE(nodes);
        limiter l({});
        std::uint32_t went = 0, asked = 0;
        while (!l.tripped() && asked < nodes) {
            went += l.narrow(rule_for(of_node(i, "n" + std::to_string(asked))),
                             of_node(i, "n" + std::to_string(asked)), true, nodes, now)
                        .allowed;
            ++asked;
        }
        CHECK(l.tripped());
        CHECK(went == at);
        CHECK(l.budget() == an_hour);
        // It stays open, for minutes and hours, until somebody closes it; then it counts from anew.
        CHECK(l.narrow(rule_for(of_node(i, "other")), of_node(i, "other"), true, nodes, now + 300'000).later);
        l.trip(false);
        l.returned("n0");
        CHECK(
            l.narrow(rule_for(of_node(i, "other")), of_node(i, "other"), true, nodes, now + 300'000).allowed);
        CHECK_FALSE(l.tripped());
    }
}

TEST_CASE("a storm opens the breaker in an hour whose limit is reached already", "[fault]") {
    const auto i = after({"79, x"});
    const std::int64_t now = i.line_ms + 1000;
    limiter l({});
    for (int n = 0; n < 8; ++n) l.count("old" + std::to_string(n), now - 600'000 - std::int64_t{n} * 300'000);
    int asked = 0;
    for (; asked < 40 && !l.tripped(); ++asked) {
        auto one = of_node(i, "n" + std::to_string(asked));
        one.line_ms += asked * 5'000;
        CHECK(l.narrow(rule_for(one), one, true, 100, now + asked * 5'000).later);
        l.not_taken(one, {});
    }
    CHECK(l.tripped());
    CHECK(asked == 9);
    CHECK(l.taken_since(now - 3'600'000) == 8);
}

TEST_CASE("a node that one incident has out counts whatever comes of another", "[fault]") {
    auto one = after({"79, x"});
    auto other = one;
    one.number = 1, other.number = 2;
    const auto taken = [&] {
        limiter l({});
        l.took(one, 1000);
        l.not_taken(other, {{1, one}, {2, other}});
        return l.taken_since(0);
    };
    CHECK(taken() == 0);
    one.node_out_ms = 1000;
    CHECK(taken() == 1);
    one.closed_ms = 2000;
    CHECK(taken() == 0);
}

TEST_CASE("a node that was not to go out after all brings the breaker no nearer", "[fault]") {
    const auto i = after({"79, x"});
    const std::int64_t now = i.line_ms + 1000;
    limiter l({});
    for (std::uint64_t n = 1; n <= 10; ++n) {
        auto one = of_node(i, "n" + std::to_string(n));
        one.number = n;
        CHECK(l.narrow(rule_for(one), one, true, 4, now).allowed);
        l.not_wanted(one, {{n, one}});
    }
    CHECK_FALSE(l.tripped());
    CHECK(l.taken_since(0) == 0);
    // Where another incident wants it out, it counts.
    for (std::uint64_t n = 11; n <= 14; ++n) {
        auto one = of_node(i, "n" + std::to_string(n));
        one.number = n;
        auto other = one;
        other.number = n + 100;
        other.state = incident_state::held;
        other.decided = static_cast<std::uint8_t>(step_kind::node_out);
        CHECK(l.narrow(rule_for(one), one, true, 4, now).allowed == (n < 14));
        l.not_wanted(one, {{n, one}, {other.number, other}});
    }
    CHECK(l.tripped());
}

TEST_CASE("a series that the hour allows does not open the breaker", "[fault]") {
    const auto i = after({"79, x"});
    limiter l({});
    std::uint32_t went = 0;
    for (int n = 0; n < 12; ++n) {
        auto late = of_node(i, "n" + std::to_string(n));
        late.line_ms += n * 100'000;
        went += l.narrow(rule_for(late), late, true, 4096, late.line_ms).allowed;
    }
    CHECK(went == 12);
    CHECK_FALSE(l.tripped());
}

TEST_CASE("an application's errors accuse the GPU when different jobs have them, and never drain",
          "[fault]") {
    engine e;
    const auto xid = [&](std::uint32_t job, int gpu, std::int64_t at) {
        auto one = event_of(gpu_line(gpu, "13, pid=7, name=p, Graphics SM Warp Exception"), at);
        one.job = job;
        return e.find(e.absorb(one, at).number);
    };
    constexpr std::int64_t hour = 3'600'000;
    const auto step = [&](const incident* i) { return shipped_policy().decide(*i, e.all()); };
    // One job, thirty times a day: its own affair.
    for (int n = 0; n < 30; ++n) CHECK(step(xid(7, 3, (n + 1) * hour)).rule == "application");
    CHECK(step(xid(8, 3, 31 * hour)).rule == "application");
    CHECK(step(xid(9, 4, 31 * hour)).rule == "application");  // another GPU
    const auto third = step(xid(10, 3, 32 * hour));
    CHECK(third.rule == "application-again");
    CHECK(third.step == step_kind::alert);
    // A day later only those of that day count.
    CHECK(step(xid(11, 3, 90 * hour)).rule == "application");
    // A person who closes an incident has seen to it.
    auto* two = xid(12, 3, 91 * hour);
    two->closed_ms = 91 * hour;
    CHECK(step(xid(13, 3, 92 * hour)).rule == "application");
    CHECK(step(xid(14, 3, 93 * hour)).rule == "application-again");
}

TEST_CASE("no application's error of the catalogue drains, however many jobs have it", "[fault]") {
    for (const auto& row : catalog::xids()) {
        if (row.bucket != catalog::bucket::restart_app) continue;
        engine e;
        for (std::uint32_t job = 1; job <= 40; ++job) {
            auto one = event_of(gpu_line(3, std::to_string(row.code) + ", pid=7, name=p, x"), job * 1000);
            one.job = job;
            const auto* i = e.find(e.absorb(one, job * 1000).number);
            CHECK(shipped_policy().decide(*i, e.all()).step <= step_kind::alert);
        }
    }
}

TEST_CASE("jobs that had a node alone count where the line names none", "[fault]") {
    incident i;
    i.reason = "gpu-app";
    i.object.kind = object_kind::gpu;
    i.object.bdf = "0000:03:00";
    i.root_precedence = static_cast<std::uint8_t>(precedence::app);
    i.line_ms = i.last_ms = 1000;
    policy::incidents known;
    for (std::uint64_t n = 1; n <= 3; ++n) {
        i.number = n;
        i.jobs = {n};
        known[n] = i;
    }
    CHECK(shipped_policy().decide(known[3], known).rule == "application-again");
    known[2].jobs = {2, 5};  // which of them it was nobody knows
    CHECK(shipped_policy().decide(known[3], known).rule == "application");
}

}  // namespace test_policy
