// SPDX-License-Identifier: BSD-3-Clause
//
// What the limits hold back, or slurmctld does not answer for, and an administrator's rulings on it.
#include <catch2/catch.hpp>

#include "test/unit/fault/controller_bench.hpp"

namespace test_held_back {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

TEST_CASE("what slurmctld did not answer for is done when it does", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
    b.slurm.refused = 2;
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    CHECK(got[0].state == incident_state::done);
    CHECK(got[0].find_action("node_down", "n03")->result == "held back: slurmctld is away");
    CHECK(got[0].node_out_ms != 0);
    CHECK(got[0].held_ms == 0);
}

TEST_CASE("a node that was taken out by half is taken out, and its job followed", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, without);
    std::vector<std::string> calls;
    SECTION("drained, and not yet down") {
        b.slurm.only = "drain";
        calls = {"drain only n03", "down n03", "requeue 7", "start 7"};
    }
    SECTION("down, and not yet drained") {
        b.slurm.only = "down";
        calls = {"down only n03", "drain n03", "requeue 7", "start 7"};
    }
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == calls);
    CHECK(b.slurm.nodes["n03"].down);
    CHECK(b.slurm.nodes["n03"].drained);
    CHECK(got[0].node_out_ms != 0);
}

TEST_CASE("a node that was taken out by half counts as taken out", "[fault]") {
    controller_bench b;
    b.settings.drains_per_hour = 1;
    b.settings.drains_percent = 0;
    b.slurm.only = "drain";
    b.slurm.refuse_node = "n03";
    const bool half = GENERATE(true, false);
    if (half) b.slurm.refuse_node.clear();
    std::uint32_t counted = 0;
    life l(b);
    l.take({b.xid79()});
    REQUIRE(l.until([&] {
        const bool held = l.first() && l.first()->find_action("node_down", "n03");
        if (held && counted == 0) counted = l.c.look().limits.taken_since(0);
        return held;
    }));
    CHECK(counted == (half ? 1 : 0));
    {
        const std::lock_guard hold(b.slurm.lock);
        b.slurm.refuse_node.clear();
    }
    CHECK(l.until([&] { return l.is_done(); }));
    CHECK(l.first()->node_out_ms != 0);
}

TEST_CASE("a node that is dead is not drained, too", "[fault]") {
    controller_bench b;
    incident i;
    i.number = 1;
    i.object.kind = object_kind::node;
    i.object.node = "n03";
    i.reason = silent_reason;
    i.severity = severity::fatal;
    i.root_precedence = static_cast<std::uint8_t>(precedence::node_out);
    i.state = incident_state::acting;
    i.line_ms = i.incident_ms = i.last_ms = clock::wall_ms();
    {
        history book = *history::open(b.settings.history, b.reason);
        REQUIRE(book.keep(i));
    }
    b.slurm.nodes["n03"] = {"n03", true, false, "banyan: node: n03 does not answer [f00001]"};
    const auto got = b.live({});
    CHECK(b.slurm.calls.empty());
    CHECK(got[0].node_out_ms != 0);
}

TEST_CASE("nodes that an hour's limit holds back open the breaker, too", "[fault]") {
    controller_bench b;
    b.settings.drains_per_hour = 1;
    b.settings.drains_percent = 0;
    for (int n = 5; n <= 9; ++n) b.slurm.nodes["n0" + std::to_string(n)] = {};
    life l(b);
    for (std::uint64_t n = 1; n <= 4; ++n) {  // one after another
        const auto node = "n0" + std::to_string(n);
        CHECK_FALSE(l.c.look().limits.tripped());
        l.take({event_of(gpu_line(3, "79, GPU has fallen off the bus."), clock::wall_ms(), 1, node)});
        REQUIRE(l.until([&] {
            const auto& all = l.c.incidents().all();
            return all.size() == n && (all.rbegin()->second.state == incident_state::held ||
                                       all.rbegin()->second.state == incident_state::done);
        }));
    }
    CHECK(l.c.look().limits.tripped());
    CHECK(b.slurm.calls == std::vector<std::string>{"down n01"});
}

TEST_CASE("nodes that an administrator has out already do not open the breaker", "[fault]") {
    controller_bench b;
    for (int n = 1; n <= 6; ++n) {
        const auto node = "n0" + std::to_string(n);
        b.slurm.nodes[node] = {node, false, true, "GPUs are reseated"};
    }
    life l(b);
    for (std::uint64_t n = 1; n <= 6; ++n) {  // one after another
        const auto node = "n0" + std::to_string(n);
        l.take({event_of(gpu_line(3, "79, GPU has fallen off the bus."), clock::wall_ms(), 1, node)});
        REQUIRE(l.until([&] {
            const auto& all = l.c.incidents().all();
            return all.size() == n && all.rbegin()->second.state == incident_state::done;
        }));
        CHECK_FALSE(l.c.look().limits.tripped());
    }
    CHECK(b.slurm.calls.empty());
}

TEST_CASE("a node counts as taken out whatever else of it is held back", "[fault]") {
    controller_bench b;
    life l(b);
    l.take({b.xid79(1)});
    REQUIRE(l.until([&] { return l.is_done() && l.first()->node_out_ms != 0; }));
    REQUIRE(l.c.look().limits.taken_since(0) == 1);
    b.slurm.jobs_unknown = true;
    auto other = event_of(gpu_line(5, "48, pid=1, name=p, DBE"), clock::wall_ms() + 60'000, 2, "n03");
    l.take({other});
    REQUIRE(l.until([&] {
        const auto& all = l.c.incidents().all();
        return all.size() == 2 && all.rbegin()->second.state == incident_state::held;
    }));
    CHECK(l.c.look().limits.taken_since(0) == 1);
}

TEST_CASE("what the limit of an hour held back is done when there is room", "[fault]") {
    controller_bench b;
    b.settings.drains_per_hour = 1;
    b.settings.drains_percent = 0;
    auto first = b.xid79(1), second = b.xid79(2);
    second.node = "n04";
    // Both are looked into at once: either may be the first.
    const auto got = b.live({first, second}, incident_state::held);
    CHECK(std::ranges::count(got, incident_state::done, &incident::state) == 1);
    CHECK(std::ranges::count(got, incident_state::held, &incident::state) == 1);
    CHECK(b.slurm.calls.size() == 1);
    // Another controller with a wider limit.
    b.settings.drains_per_hour = 2;
    (void)b.live({});
    std::ranges::sort(b.slurm.calls);
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "down n04"});
}

TEST_CASE("an administrator rules on what the limits hold back", "[fault]") {
    controller_bench b;
    b.settings.drains_per_hour = 0;
    (void)b.live({b.xid79()}, incident_state::held);
    REQUIRE(b.slurm.calls.empty());
    const auto last = [&](const char* what) {
        std::string out;
        for (const auto& a : b.kept.at(0).actions)
            if (a.what == what) out = a.result;
        return out;
    };
    SECTION("retry asks the limits") {
        const auto still = b.ruled(ruling::retry);
        REQUIRE_FALSE(still);
        CHECK(still.error().code == errc::conflict);
        CHECK(still.error().text().find("stays held back: 0 nodes were taken out within the hour") !=
              std::string::npos);
        CHECK(last("retry").starts_with("by uid 7: 0 nodes"));
        CHECK(b.slurm.calls.empty());
        b.settings.drains_per_hour = 8;
        (void)b.ruled(ruling::retry);  // or the controller by itself, whoever is first
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    }
    SECTION("approve does not") {
        const auto done = b.ruled(ruling::approve);
        REQUIRE(done);
        CHECK(*done == "n03 is taken out now (down): banyan-fault explain f00001");
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
        CHECK(last("approve") == "by uid 7");
        CHECK(b.kept[0].state == incident_state::done);
        const auto again = b.ruled(ruling::approve);
        REQUIRE_FALSE(again);
        CHECK(again.error().text().find("nothing of incident f00001 is held back") != std::string::npos);
        CHECK(b.slurm.calls.size() == 1);
    }
    SECTION("approve past an open breaker") {
        b.settings.drains_per_hour = 8;
        for (const auto* node : {"n01", "n02", "n04", "n05"})
            (void)b.live(
                {event_of(gpu_line(3, "79, GPU has fallen off the bus."), clock::wall_ms(), 1, node)},
                incident_state::held);
        const auto calls = b.slurm.calls.size();
        CHECK(b.ruled(ruling::approve, 5));
        CHECK(b.slurm.calls.size() == calls + 1);
    }
    SECTION("approve in dry run") {
        b.settings.dry_run = true;
        const auto done = b.ruled(ruling::approve);
        REQUIRE(done);
        CHECK(done->find("dry run: n03 stays in") == 0);
        CHECK(b.slurm.calls.empty());
        CHECK(last("approve") == "by uid 7, in dry run");
        CHECK(last("node_down").starts_with("dry run: would set n03 DOWN"));
    }
    SECTION("slurmctld refuses at first what was approved") {
        b.slurm.refused = 2;
        CHECK(b.ruled(ruling::approve));
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    }
    SECTION("what was approved is done by the next controller") {
        b.slurm.refused = 1'000'000;
        b.wait_for_it = false;
        CHECK(b.ruled(ruling::approve));
        CHECK(b.slurm.calls.empty());
        b.slurm.refused = 0;
        const auto got = b.live({});
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
        CHECK(got[0].approved_by.empty());
    }
    SECTION("cancel: never by itself, until it is approved") {
        CHECK(b.ruled(ruling::cancel));
        CHECK(last("cancel") == "by uid 7");
        CHECK(b.kept[0].state == incident_state::done);
        b.settings.drains_per_hour = 8;
        auto later = b.xid79(2);
        later.line_ms += 120'000;
        for (int n = 0; n < 3; ++n) {
            later.position++;
            later.line_ms += 60'000;
            const auto got = b.live({later});
            CHECK(got.size() == 1);
            CHECK(std::ranges::count(got[0].actions, std::string("held back: cancelled by uid 7"),
                                     &action_record::result) == 1);
        }
        CHECK(b.slurm.calls.empty());
        const auto retried = b.ruled(ruling::retry);
        REQUIRE_FALSE(retried);
        CHECK(retried.error().text().find("for good; banyan-fault approve f00001") != std::string::npos);
        CHECK(b.ruled(ruling::approve));
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    }
}

TEST_CASE("there is nothing to rule on where nothing is held back", "[fault]") {
    controller_bench b;
    auto old = b.xid79(1);
    old.line_ms -= 3'600'000;
    (void)b.live({old, event_of(gpu_line(3, "31, pid=1, name=p"), clock::wall_ms(), 2, "n04")});
    const auto error_of = [&](ruling what, std::uint64_t number) {
        const auto done = b.ruled(what, number);
        return done ? std::string() : done.error().text();
    };
    for (const auto what : {ruling::approve, ruling::retry, ruling::cancel}) {
        CHECK(error_of(what, 2) == "nothing of incident f00002 is held back: what is asked for is \"log\"");
        CHECK(error_of(what, 99).find("there is no open incident f00099") == 0);
    }
    CHECK(error_of(ruling::retry, 1).find("for good") != std::string::npos);
    CHECK(b.slurm.calls.empty());
    CHECK(error_of(ruling::approve, 1).empty());
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
}

TEST_CASE("a breaker that opened stays open for the next controller", "[fault]") {
    controller_bench b;
    const auto lost = [](const char* node) {
        return event_of(gpu_line(3, "79, GPU has fallen off the bus."), clock::wall_ms(), 1, node);
    };
    for (const auto* node : {"n01", "n02", "n03", "n04"}) (void)b.live({lost(node)}, incident_state::held);
    CHECK(b.slurm.calls.size() == 3);
    b.slurm.nodes["n05"] = {"n05", false, false, ""};
    const auto got = b.live({lost("n05")}, incident_state::held);
    CHECK(b.slurm.calls.size() == 3);
    REQUIRE(got.size() == 5);
    REQUIRE(got[4].find_action("node_down", "n05"));
    CHECK(got[4].find_action("node_down", "n05")->result.find("breaker is open") != std::string::npos);
}

TEST_CASE("a breaker that opened in dry run is closed when nodes may go out", "[fault]") {
    controller_bench b;
    const auto lost = [](const char* node) {
        return event_of(gpu_line(3, "79, GPU has fallen off the bus."), clock::wall_ms(), 1, node);
    };
    b.settings.dry_run = true;
    std::vector<event> all;
    for (const auto* node : {"n01", "n02", "n03", "n04"}) all.push_back(lost(node));
    const auto got = b.live(all, incident_state::held);
    CHECK(std::ranges::any_of(got, [](const incident& i) {
        return results_of(i, "node_down").find("the circuit breaker opened") != std::string::npos;
    }));
    CHECK(b.slurm.calls.empty());
    {
        history book = *history::open(b.settings.history, b.reason);
        CHECK_FALSE(*book.flag("breaker"));
    }
    b.settings.dry_run = false;
    b.slurm.nodes["n05"] = {"n05", false, false, ""};
    (void)b.live({lost("n05")}, incident_state::held);
    CHECK(std::ranges::find(b.slurm.calls, "down n05") != b.slurm.calls.end());
}

TEST_CASE("nodes that fail at the same moment are as many as the limits allow", "[fault]") {
    controller_bench b;
    std::vector<event> all;
    for (int n = 1; n <= 8; ++n) {
        const auto node = "n0" + std::to_string(n);
        b.slurm.nodes[node] = {node, false, false, ""};
        all.push_back(event_of(gpu_line(3, "79, GPU has fallen off the bus."), clock::wall_ms(), 1, node));
    }
    SECTION("the breaker's") {}
    SECTION("of an hour") { b.settings.drains_per_hour = 4; }
    const auto got = b.live(all, incident_state::held);
    CHECK(b.slurm.calls.size() == 4);  // half of eight
    const auto held = std::ranges::count_if(got, [](const incident& i) {
        const auto* done = i.find_action("node_down", i.object.node);
        return done && done->result.starts_with("held back: ");
    });
    CHECK(held == 4);
}

}  // namespace test_held_back
