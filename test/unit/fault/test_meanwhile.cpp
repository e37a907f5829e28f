// SPDX-License-Identifier: BSD-3-Clause
//
// What changes while something is done about an incident: its port comes up, its job ends, what was approved
// is not what is asked for any more.

#include <catch2/catch.hpp>

#include "test/unit/fault/controller_bench.hpp"

namespace test_meanwhile {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t hour = 3'600'000;

policy rules_from(const std::string& text) {
    auto read = parse_policy("site.toml", text);
    REQUIRE(read.rules);
    return std::move(*read.rules);
}

event of_port(catalog::symptom what, std::uint64_t position) {
    event e;
    e.fault = symptom_at(what, "0000:3b:00.0", "mlx5_0", "HCA mlx5_0 port 1");
    e.node = "n03";
    e.boot_id = "boot";
    e.stream = "s";
    e.position = position;
    e.line_ms = clock::wall_ms();
    e.text = e.fault.message;
    return e;
}

}  // namespace

TEST_CASE("a port that comes up while its node is being drained", "[fault]") {
    controller_bench b;
    b.rules = rules_from(
        "[[rule]]\nname = \"port\"\nsymptom = \"hca-port-down\"\naction = \"drain\"\nwhy = \"x\"\n");
    gate slurm;
    const bool drained = GENERATE(false, true);
    (drained ? b.slurm.when_set : b.slurm.when_node) = [&] { slurm(); };
    life l(b);
    l.take({of_port(catalog::symptom::hca_port_down, 1)});
    REQUIRE(l.until([&] { return slurm.reached(); }));
    // Nobody closes it by hand meanwhile.
    result<void> closed;
    bool answered = false;
    const auto close = [&]() -> task<void> {
        closed = co_await l.c.close(1, "uid 7");
        answered = true;
    };
    asio::co_spawn(l.io, close(), asio::detached);
    REQUIRE(l.until([&] { return answered; }));
    REQUIRE_FALSE(closed);
    CHECK(closed.error().text().find("is being acted on") != std::string::npos);
    l.take({of_port(catalog::symptom::hca_port_up, 2)});
    REQUIRE(l.until([&] { return l.first()->closed_ms != 0; }));
    slurm.open();
    CHECK(l.until([&] { return l.first()->find_action("node_drain", "n03") && l.is_done(); }));
    if (drained) {
        // The drain is somebody's to end, and says why it is there.
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03"});
        CHECK(l.first()->node_out_ms != 0);
        CHECK(l.first()->closed_ms == 0);
        CHECK(l.first()->closed_by.empty());
    } else {
        CHECK(b.slurm.calls.empty());
        CHECK(results_of(*l.first(), "node_drain") ==
              "nothing to do: closed meanwhile, by the fabric: it is back");
        CHECK(l.first()->closed_ms != 0);
    }
}

TEST_CASE("a job that has ended is not put back into the queue", "[fault]") {
    controller_bench b;
    b.settings.verify = {300ms, 50ms, 400ms, 10ms};
    const auto ends = [&] {
        b.slurm.jobs[7].phase = job_phase::ended;
        b.slurm.jobs[7].nodes.clear();
        b.slurm.steps[7].clear();
    };
    std::string what, said;
    std::optional<int> looks;
    SECTION("for a rule") {
        b.rules = rules_from("[[rule]]\nname = \"again\"\nxid = 79\naction = \"requeue\"\n");
        b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
        b.slurm.jobs[7].start_time = clock::wall_ms() / 1000 - 3600;
        b.slurm.when_needed = ends;
        what = "requeue", said = "not done: run 0 is over";
    }
    SECTION("since it has too few nodes left") {
        b.job(7, {"n01", "n02", "n03", "n04"}, without);
        b.slurm.when_needed = ends;
        what = "job", said = "ended";
    }
    SECTION("since it has no new step") {
        b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
        b.slurm.steps[7] = {{1, {"n01", "n02", "n03", "n04"}}};
        // Between the last look at it and the call: which nodes hold it up is known, and that it runs.
        b.slurm.when_asked = [&] { looks = 0; };
        b.slurm.after_job = [&] {
            if (looks && ++*looks == 2) ends();
        };
        what = "job", said = "ended";
    }
    b.enough = [&](const auto& all) {
        return !all.empty() && results_of(all[0], what).find(said) != std::string::npos;
    };
    const auto got = b.live({b.xid79()});
    CHECK(std::ranges::find(b.slurm.calls, "requeue 7") == b.slurm.calls.end());
    CHECK(results_of(got.at(0), what).find(said) != std::string::npos);
}

TEST_CASE("what somebody approved is that very thing, and for a day", "[fault]") {
    controller_bench b;
    b.rules = rules_from(
        "[[rule]]\nname = \"out\"\nxid = 79\naction = \"down\"\n"
        "[[rule]]\nname = \"drain\"\nxid = 48\naction = \"drain\"\n"
        "[[rule]]\nname = \"again\"\nxid = 31\naction = \"restart-step\"\n");
    b.settings.drains_per_hour = 0;
    const auto approved = [&](const char* line, std::int64_t ago) {
        auto e = event_of(gpu_line(3, line), clock::wall_ms() - ago, 1);
        engine earlier;
        auto i = *earlier.find(earlier.absorb(e, e.line_ms).number);
        i.state = incident_state::held;
        i.held_ms = clock::wall_ms() - ago;
        i.approved_by = "uid 7";
        i.decided = static_cast<std::uint8_t>(b.rules.decide(i).step);
        i.actions = {{"approve", "n03", clock::wall_ms() - ago, "by uid 7"}};
        history book = *history::open(b.settings.history, b.reason);
        REQUIRE(book.keep({{e, i.number}}, {i}));
    };
    std::vector<event> more;
    std::string lapse;
    SECTION("it is done as long as it is that") {
        approved("48, pid=1, name=p, DBE", 23 * hour);
        (void)b.live({}, incident_state::held);
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03"});
        return;
    }
    SECTION("not a day later: the fault may have been mended") {
        approved("48, pid=1, name=p, DBE", 25 * hour);
        lapse = "lapses: what uid 7 approved could not be done for 24 h";
    }
    SECTION("not more than that") {
        approved("48, pid=1, name=p, DBE", 0);
        b.slurm.refuse_node = "n03";
        more = {b.xid79(2)};
        lapse = "lapses: \"drain\" was approved, and \"down\" is asked for now";
    }
    SECTION("not a drain for a step that ends") {
        approved("31, pid=1, name=p, MMU Fault", 0);
        b.job(7, {"n03"}, with_spare);
        b.slurm.jobs[7].exclusive = true;
        b.slurm.ranks.insert_or_assign(7, fail(errc::unavailable, "slurmctld is busy"));
        more = {event_of(gpu_line(3, "48, pid=1, name=p, DBE"), clock::wall_ms(), 2)};
        lapse = "lapses: \"restart-step\" was approved, and \"drain\" is asked for now";
    }
    b.enough = [&](const auto& all) {
        return !all.empty() && results_of(all[0], "approve").find(lapse) != std::string::npos;
    };
    auto got = b.live(more, incident_state::held);
    CHECK(results_of(got.at(0), "approve") == "by uid 7; " + lapse);
    CHECK(got[0].approved_by.empty());
    CHECK(b.slurm.calls.empty());
    // Nor by the next controller.
    b.enough = [](const auto&) { return true; };
    b.slurm.refuse_node.clear();
    b.slurm.ranks.clear();
    got = b.live({}, incident_state::held);
    CHECK(b.slurm.calls.empty());
}

TEST_CASE("a node that somebody returned while its job is followed is not taken out for that again",
          "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
    b.slurm.away = true;  // nothing is told of the job, which is followed on
    const auto begin = clock::wall_ms() - 60'000;
    const auto lost = [&](std::uint64_t position, std::int64_t after_ms) {
        return event_of(gpu_line(3, "79, GPU has fallen off the bus."), begin + after_ms, position);
    };
    life l(b);
    l.take({lost(1, 0)});
    REQUIRE(l.until([&] { return l.first() && l.first()->node_out_ms != 0; }));
    l.take({lost(2, 50'000)});  // it asks for more, when the job is done with
    REQUIRE(l.until([&] { return l.first()->lines == 2; }));
    result<std::string> answer = fail(errc::internal, "no answer");
    const auto resume = [&]() -> task<void> { answer = co_await l.c.resume("n03", "uid 7"); };
    asio::co_spawn(l.io, resume(), asio::detached);
    REQUIRE(l.until([&] { return answer.has_value(); }));
    CHECK(*answer ==
          "node n03 is back in service; 1 incidents closed, 1 of them while their jobs are followed still");
    CHECK(l.first()->closed_ms != 0);
    CHECK(l.first()->closed_by == "uid 7");
    {
        const std::lock_guard hold(b.slurm.lock);
        b.slurm.away = false;
    }
    REQUIRE(l.until([&] { return l.is_done() && l.first()->find_action("job", "7"); }));
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "resume n03"});
    // Seen again in service it is another incident.
    l.take({event_of(gpu_line(3, "79, GPU has fallen off the bus."), clock::wall_ms() + 100, 3)});
    CHECK(l.until([&] { return b.slurm.calls.size() == 3; }));
    CHECK(l.c.incidents().all().size() == 2);
}

}  // namespace test_meanwhile
