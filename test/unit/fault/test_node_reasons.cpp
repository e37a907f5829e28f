// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes that somebody else has out already: whose reason is replaced, and whose stays.
#include <catch2/catch.hpp>

#include "test/unit/fault/controller_bench.hpp"

namespace test_node_reasons {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

TEST_CASE("a node that banyan-sweep has drained is the incident's from then on", "[fault]") {
    controller_bench b;
    b.slurm.nodes["n03"] = {"n03", false, true, "banyan-sweep: links: 7 InfiniBand ports are active"};
    const auto reset = event_of(gpu_line(3, "119, Timeout"), clock::wall_ms(), 5);
    std::vector<std::string> calls{"drain n03"};
    std::string did = "node_drain";
    SECTION("nobody is on it, and it stays drained") { (void)b.live({reset}); }
    SECTION("its jobs cannot leave it") {
        b.job(8, {"n03"}, std::nullopt);
        (void)b.live({reset});
    }
    SECTION("its job leaves it") {
        b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
        (void)b.live({reset});
        calls = {"down n03"};
        did = "node_down";
    }
    SECTION("it is to be restarted") {
        (void)b.live({b.xid79()});
        calls = {"down n03"};
        did = "node_down";
    }
    SECTION("it is down already") {
        b.slurm.nodes["n03"].down = true;
        (void)b.live({b.xid79()});
        calls = {"down n03"};
        did = "node_down";
    }
    CHECK(b.slurm.calls == calls);
    CHECK(b.slurm.nodes["n03"].drained);
    CHECK(b.slurm.nodes["n03"].reason.starts_with("banyan: gpu: Xid "));
    const auto got = b.live({});
    REQUIRE(got.size() == 1);
    CHECK(got[0].node_out_ms != 0);
    CHECK(results_of(got[0], did).starts_with("done: \"banyan: gpu: Xid "));
    CHECK(b.slurm.calls == calls);
}

TEST_CASE("a fault that goes on, on a node that somebody has out, is left alone once", "[fault]") {
    controller_bench b;
    std::string what = "node_drain", said = "left alone: the node has the reason \"fan test\"";
    b.slurm.nodes["n03"] = {"n03", false, true, "fan test"};
    SECTION("an administrator") {}
    SECTION("another incident") {
        b.slurm.nodes["n03"].reason = "banyan: gpu: Xid 48 GPU 1 [f00099]";
        said = "nothing to do: the node is out already (\"banyan: gpu: Xid 48 GPU 1 [f00099]\")";
    }
    SECTION("an administrator, with a job that stays") {
        b.job(8, {"n03"}, std::nullopt);
        what = "job";
        said = "job 8 was placed without a plan: the jobs of the node stay on it";
    }
    const auto begin = clock::wall_ms() - 300'000;
    life now(b);
    for (std::uint64_t minute = 0; minute < 5; ++minute) {
        now.take({event_of(gpu_line(3, "119, Timeout"), begin + static_cast<std::int64_t>(minute) * 60'000,
                           minute + 1)});
        REQUIRE(now.until([&] { return now.first() && now.first()->lines == minute + 1 && now.is_done(); }));
    }
    CHECK(now.c.incidents().all().size() == 1);
    CHECK(results_of(*now.first(), what) == said);
    CHECK(b.slurm.calls.empty());
}

TEST_CASE("a node that would be back with its slurmd is kept out for a fault", "[fault]") {
    controller_bench b;
    const std::string reason = GENERATE("banyan: node: n03 does not answer [f00099]", "Not responding",
                                        "Node unexpectedly rebooted", "");
    const bool restart = GENERATE(true, false);
    CAPTURE(reason, restart);
    b.slurm.nodes["n03"] = {"n03", true, false, reason};
    const std::vector<std::string> calls{restart ? "down n03" : "drain n03"};
    const auto got =
        b.live({restart ? b.xid79() : event_of(gpu_line(3, "48, pid=1, name=p, DBE"), clock::wall_ms(), 1)});
    CHECK(b.slurm.calls == calls);
    CHECK(b.slurm.nodes["n03"].drained);
    CHECK(b.slurm.nodes["n03"].reason.starts_with(restart ? "banyan: gpu: Xid 79" : "banyan: gpu: Xid 48"));
    CHECK(b.slurm.nodes["n03"].reason.ends_with("[f00001]"));
    REQUIRE(got.size() == 1);
    CHECK(got[0].node_out_ms != 0);
    CHECK(results_of(got[0], restart ? "node_down" : "node_drain").starts_with("done: \"banyan: gpu: Xid "));
    (void)b.live({});
    CHECK(b.slurm.calls == calls);
}

TEST_CASE("a node that is dead stays slurmctld's where that was first", "[fault]") {
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
    b.slurm.nodes["n03"] = {"n03", true, false, "Not responding"};
    const auto got = b.live({});
    CHECK(b.slurm.calls.empty());
    CHECK(results_of(got.at(0), "node_down") ==
          "nothing to do: the node is out already (\"Not responding\")");
}

TEST_CASE("a fault waits for a node that an administrator has down and not drained", "[fault]") {
    controller_bench b;
    b.slurm.nodes["n03"] = {"n03", true, false, "fan test"};
    life l(b);
    l.take({b.xid79()});
    const auto is_held = [&] { return l.first() && l.first()->state == incident_state::held; };
    REQUIRE(l.until(is_held));
    CHECK(b.slurm.calls.empty());
    CHECK(l.c.look().limits.taken_since(0) == 0);
    CHECK(results_of(*l.first(), "node_down")
              .starts_with("held back: the node is down with the reason \"fan test\""));
    std::vector<std::string> calls;
    SECTION("it is back") {
        {
            const std::lock_guard hold(b.slurm.lock);
            b.slurm.nodes["n03"] = {"n03", false, false, ""};
        }
        calls = {"down n03"};
    }
    SECTION("it is drained, and stays so") {
        const std::lock_guard hold(b.slurm.lock);
        b.slurm.nodes["n03"].drained = true;
    }
    CHECK(l.until([&] { return l.is_done(); }));
    CHECK(b.slurm.calls == calls);
    CHECK((l.first()->node_out_ms != 0) == !calls.empty());
}

TEST_CASE("a node that somebody took down and returned stays, where he may have mended it", "[fault]") {
    controller_bench b;
    b.slurm.nodes["n03"] = {"n03", true, false, "GPU 3 is reset"};
    life l(b);
    l.take({event_of(gpu_line(3, "48, pid=1, name=p, DBE"), clock::wall_ms(), 1)});
    REQUIRE(l.until([&] { return l.first() && l.first()->state == incident_state::held; }));
    {
        const std::lock_guard hold(b.slurm.lock);
        b.slurm.nodes["n03"] = {"n03", false, false, ""};
        b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
    }
    CHECK(l.until([&] { return l.is_done(); }));
    CHECK(b.slurm.calls.empty());
    const auto said = l.first()->actions.back().result;
    CHECK(said.find("taken down by somebody, and is back. banyan-fault approve f00001") != std::string::npos);
}

TEST_CASE("the sweep does not return a node whose fault is held back", "[fault]") {
    controller_bench b;
    const std::string swept = "banyan-sweep: disks: /local is full";
    b.slurm.nodes["n03"] = {"n03", false, true, swept};
    b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
    const auto broken = event_of(gpu_line(3, "48, pid=1, name=p, DBE"), clock::wall_ms(), 1);
    const bool breaker = GENERATE(true, false);
    CAPTURE(breaker);
    if (breaker) {
        history book = *history::open(b.settings.history, b.reason);
        REQUIRE(book.set_flag("breaker", true));
    } else {
        b.settings.drains_per_hour = 0;
    }
    SECTION("its reason is the incident's, and the rest waits") {
        const auto got = b.live({broken}, incident_state::held);
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03"});
        CHECK(b.slurm.nodes["n03"].reason.starts_with("banyan: gpu: Xid 48"));
        CHECK(std::ranges::count(b.slurm.jobs[7].nodes, "n03") == 1);
        REQUIRE(got.size() == 1);
        CHECK(got[0].state == incident_state::held);
        CHECK(got[0].node_out_ms == 0);
        // Its job leaves it when there is room.
        {
            history book = *history::open(b.settings.history, b.reason);
            REQUIRE(book.set_flag("breaker", false));
        }
        b.settings.drains_per_hour = 8;
        CHECK(b.live({}).at(0).node_out_ms != 0);
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03", "down n03"});
    }
    SECTION("also where slurmctld did not answer at first; who returns it closes the incident") {
        b.slurm.refuse_node = "n03";
        life l(b);
        l.take({broken});
        REQUIRE(l.until([&] { return l.first() && l.first()->state == incident_state::held; }));
        CHECK(b.slurm.calls.empty());
        {
            const std::lock_guard hold(b.slurm.lock);
            b.slurm.refuse_node.clear();
        }
        const auto is_kept = [&] {
            const std::lock_guard hold(b.slurm.lock);
            return !b.slurm.calls.empty();
        };
        REQUIRE(l.until([&] { return is_kept() && l.first()->state == incident_state::held; }));
        result<std::string> answer = fail(errc::internal, "no answer");
        const auto resume = [&]() -> task<void> { answer = co_await l.c.resume("n03", "uid 7"); };
        asio::co_spawn(l.io, resume(), asio::detached);
        REQUIRE(l.until([&] { return answer.has_value(); }));
        CHECK(answer->find("1 incidents closed") != std::string::npos);
        CHECK(l.first()->closed_ms != 0);
    }
    SECTION("nothing is changed in dry run") {
        b.settings.dry_run = true;
        (void)b.live({broken}, incident_state::held);
        CHECK(b.slurm.calls.empty());
        CHECK(b.slurm.nodes["n03"].reason == swept);
    }
    SECTION("an administrator's drain stays") {
        b.slurm.nodes["n03"].reason = "fan test";
        (void)b.live({broken}, incident_state::held);
        CHECK(b.slurm.calls.empty());
    }
}

TEST_CASE("an incident keeps what was done, and of what came to nothing not all", "[fault]") {
    incident i;
    for (std::size_t n = 0; n < 2 * incident::max_actions; ++n)
        i.add_action({"node_down", "n03", 1, "held back: " + std::to_string(n)}, false);
    CHECK(i.actions.size() == incident::max_actions);
    CHECK(i.actions.back().result == "held back: " + std::to_string(2 * incident::max_actions - 1));
    i.add_action({"node_down", "n03", 2, "done"}, true);
    CHECK(i.actions.back().result == "done");
}

}  // namespace test_node_reasons
