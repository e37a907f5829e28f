// SPDX-License-Identifier: BSD-3-Clause
//
// Rules that interrupt jobs while the node stays: a training step that is ended to start again, and a job
// that goes back into the queue. On a fake cluster.
#include <catch2/catch.hpp>

#include "fault/agent/job_watch.hpp"
#include "fault/controller/interruption.hpp"
#include "test/unit/fault/controller_bench.hpp"

namespace test_interruption {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

using calls = std::vector<std::string>;

class interrupting : public controller_bench {
  public:
    /// One life that hears the second event when Slurm was called as `until`, and ends when `done`.
    std::vector<incident> live_twice(event first, const calls& until, event second,
                                     const std::function<bool(const controller&)>& done) {
        asio::io_context io;
        asio::thread_pool pool(2);
        controller c(io, pool, settings, rules, figures, std::make_unique<fake_cluster>(slurm));
        REQUIRE(c.start());
        asio::co_spawn(io, c.take_events("n03", {std::move(first)}), asio::detached);
        CHECK(time.until(io, [&] { return called(until); }));
        asio::co_spawn(io, c.take_events("n03", {std::move(second)}), asio::detached);
        CHECK(time.until(io, [&] { return done(c); }));
        time.pass(io, std::chrono::milliseconds(20));
        pool.join();
        c.finish();
        std::vector<incident> out;
        for (const auto& [number, i] : c.incidents().all()) out.push_back(i);
        return out;
    }
    bool called(const calls& what) {
        const std::lock_guard hold(slurm.lock);
        return slurm.calls == what;
    }
    explicit interrupting(const std::string& action) {
        const auto text =
            "[[rule]]\nname = \"again\"\nxid = [31, 79]\naction = \"" + action + "\"\nwhy = \"again\"\n";
        rules = std::move(*parse_policy("site.toml", text).rules);
        settings.verify = {std::chrono::milliseconds(300), std::chrono::milliseconds(50),
                           std::chrono::milliseconds(400), std::chrono::milliseconds(10)};
        slurm.when_ended = [this](std::uint32_t step) {
            if (step == slurm.ranks.at(7)->step) begin(7, step + 1, clock::wall_ms() / 1000 + 1);
        };
    }
    /// Its training step, which began an hour ago.
    void trains(std::uint32_t id, std::uint32_t step = 3) {
        job(id, {"n01", "n02", "n03", "n04"}, with_spare);
        begin(id, step, clock::wall_ms() / 1000 - 3600);
    }
    void begin(std::uint32_t id, std::uint32_t step, std::int64_t at) {
        node_ranks r;
        r.step = step;
        r.of = 4;
        r.ranks = {2};
        r.start_time = at;
        slurm.ranks.insert_or_assign(id, r);
        // A helper's step was there before.
        slurm.steps[id] = {{1, {"n01"}}, {step, {"n01", "n02", "n03"}}};
    }
    static event of_job(std::uint32_t job, std::uint64_t position = 5) {
        auto e = event_of(gpu_line(3, "31, pid=1, name=p, MMU Fault"), clock::wall_ms(), position);
        e.job = job;
        return e;
    }
};

std::string said(const incident& i, const std::string& what, const std::string& target) {
    std::string out;
    for (const auto& a : i.actions)
        if (a.what == what && a.target == target) out += (out.empty() ? "" : "; ") + a.result;
    return out;
}

bool verified(const std::vector<incident>& all) {
    return std::ranges::any_of(all, [](const incident& i) { return i.find_action("verify", "7"); });
}

}  // namespace

TEST_CASE("a training step is ended, starts again, and is followed", "[fault]") {
    interrupting b("restart-step");
    b.trains(7);
    b.enough = verified;
    const auto got = b.live({b.xid79(1), b.xid79(2)});
    CHECK(b.slurm.calls == calls{"end 7.3"});
    REQUIRE(got.size() == 1);
    CHECK(said(got[0], "restart-step", "7") == "ends step 7.3 of run 0: banyan-run starts it again");
    CHECK(said(got[0], "verify", "7").starts_with("step 7.4 runs on 3 nodes; "));
    CHECK(got[0].node_out_ms == 0);
    CHECK(got[0].followed.empty());
    // Neither a line more nor another controller ends the next one.
    (void)b.live({b.xid79(3)});
    CHECK(b.slurm.calls == calls{"end 7.3"});
}

TEST_CASE("a step that nobody would start again is not ended", "[fault]") {
    interrupting b("restart-step");
    b.trains(7);
    b.slurm.without_banyan_run = true;
    b.enough = [](const auto& all) { return !all.empty() && all[0].find_action("restart-step", "7"); };
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls.empty());
    CHECK(said(got.at(0), "restart-step", "7") == "left alone: no banyan-run would start step 7.3 again");
}

TEST_CASE("a step that is not started again costs the job its place", "[fault]") {
    interrupting b("restart-step");
    b.trains(7);
    b.slurm.when_ended = [&](std::uint32_t) {
        b.slurm.ranks.insert_or_assign(7, fail(errc::not_found, "no training step runs there"));
        b.slurm.steps[7] = {{1, {"n01"}}, {9, {"n02"}}};  // a helper's
    };
    b.enough = [](const auto& all) {
        return !all.empty() && said(all[0], "verify", "7").find("after it was requeued") != std::string::npos;
    };
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == calls{"end 7.3", "requeue 7", "start 7"});
    CHECK(said(got[0], "requeue", "7") == "no new step in 0 s");
}

TEST_CASE("a step that is not known to be there is ended by the next controller, if it still is", "[fault]") {
    interrupting b("restart-step");
    b.trains(7);
    b.slurm.refused = 1'000'000;
    auto got = b.live({b.xid79()}, incident_state::held);
    CHECK(b.slurm.calls.empty());
    CHECK(said(got[0], "restart-step", "7") == "ends step 7.3 of run 0: banyan-run starts it again");
    CHECK(said(got[0], "restart-step", "n03") == "held back: slurmctld is away");
    b.slurm.refused = 0;
    SECTION("it is") {
        b.enough = verified;
        (void)b.live({});
        CHECK(b.slurm.calls == calls{"end 7.3"});
    }
    SECTION("it has been started again meanwhile") {
        b.begin(7, 4, clock::wall_ms() / 1000);
        (void)b.live({});
        CHECK(b.slurm.calls.empty());
    }
    SECTION("the job runs anew") {
        b.slurm.jobs[7].restarts = 1;
        (void)b.live({});
        CHECK(b.slurm.calls.empty());
    }
}

TEST_CASE("a step that was ended is followed by the next controller, if none does", "[fault]") {
    interrupting b("restart-step");
    b.trains(7);
    b.slurm.refused = 1'000'000;
    // The history is that of a controller which ended when the step had, and nobody was following yet.
    auto got = b.live({b.xid79()}, incident_state::held);
    CHECK(got.at(0).followed.empty());
    b.slurm.refused = 0;
    b.enough = verified;
    SECTION("it is over, and nothing begins") {
        b.slurm.ranks.insert_or_assign(7, fail(errc::not_found, "no training step runs there"));
        b.slurm.steps[7] = {{1, {"n01"}}};
        got = b.live({});
        CHECK(b.slurm.calls == calls{"requeue 7", "start 7"});
    }
    SECTION("it has been started again") {
        b.begin(7, 4, clock::wall_ms() / 1000);
        got = b.live({});
        CHECK(b.slurm.calls.empty());
        CHECK(said(got.at(0), "verify", "7").starts_with("step 7.4 runs on 3 nodes; "));
        b.least = std::chrono::milliseconds(1'000);
        got = b.live({b.xid79(2)});  // nobody does twice
        CHECK(b.slurm.calls.empty());
        CHECK(std::ranges::count(got[0].actions, "verify", &action_record::what) == 1);
    }
    SECTION("the job runs anew") {
        b.begin(7, 0, clock::wall_ms() / 1000);
        b.slurm.jobs[7].restarts = 1;
        got = b.live({});
        CHECK(b.slurm.calls.empty());
        CHECK(said(got.at(0), "verify", "7").starts_with("step 7.0 runs on 3 nodes; "));
    }
}

TEST_CASE("what is not hit by the fault is not interrupted", "[fault]") {
    const std::string action = GENERATE("restart-step", "requeue");
    interrupting b(action);
    b.trains(7);
    std::string why;
    auto line = b.xid79();
    SECTION("it began since") {
        b.begin(7, 4, clock::wall_ms() / 1000 + 2);
        b.slurm.jobs[7].start_time = clock::wall_ms() / 1000 + 2;
        why = action == "requeue" ? "nothing to do: its run began after the fault was seen"
                                  : "nothing to do: step 7.4 began after the fault was seen";
    }
    SECTION("it has no plan") {
        b.job(7, {"n03"}, std::nullopt);
        b.slurm.ranks.insert_or_assign(7, fail(errc::not_found, "job 7 was placed without a plan"));
        why = action == "requeue" ? "left alone: it was placed without a plan"
                                  : "left alone: job 7 was placed without a plan";
    }
    SECTION("in dry run") {
        b.settings.dry_run = true;
        why = action == "requeue" ? "dry run: would be requeued"
                                  : "dry run: step 7.3 would be ended, to start again";
    }
    SECTION("the line is old") { line.line_ms -= 3'600'000; }
    const auto got = b.live({line});
    CHECK(b.slurm.calls.empty());
    CHECK(said(got.at(0), action, "7") == why);
    if (why.empty()) CHECK(said(got[0], action, "n03").starts_with("held back: the line is 3600 s old"));
}

TEST_CASE("what is told of a job is done to that job alone", "[fault]") {
    interrupting b("restart-step");
    b.trains(7);
    b.trains(8, 5);
    const auto rule = [&](const std::string& action) {
        auto read = parse_policy(
            "site.toml", "[[rule]]\nname = \"own\"\nreason = \"job-failed\"\naction = \"" + action + "\"\n");
        REQUIRE(read.rules);
        b.rules = std::move(*read.rules);
    };
    const auto end_of = [](std::uint32_t job, int status) {
        const job_news news{job_news::kind::task_ended, job, 5, 2, status, 0, {}};
        event e;
        e.fault = fault_of(news);
        e.text = words_of(news);
        e.node = "n03";
        e.boot_id = "boot";
        e.stream = "look";
        e.position = job;
        e.line_ms = clock::wall_ms();
        e.job = job;
        return e;
    };
    const int status = GENERATE(1 << 8, 11);  // a code, and SIGSEGV
    SECTION("its step is started again") {
        rule("restart-step");
        const auto got = b.live({end_of(8, status)});
        CHECK(b.slurm.calls == calls{"end 8.5"});
        CHECK(got.at(0).jobs == std::vector<std::uint64_t>{8});
    }
    SECTION("it is in the queue again") {
        rule("requeue");
        (void)b.live({end_of(8, status)});
        REQUIRE_FALSE(b.slurm.calls.empty());
        CHECK(std::ranges::none_of(b.slurm.calls, [](const auto& call) { return call.ends_with(" 7"); }));
    }
    SECTION("it is named") {
        rule("alert");
        const auto got = b.live({end_of(8, status)});
        CHECK(got.at(0).jobs == std::vector<std::uint64_t>{8});
        REQUIRE(got[0].ranks.size() == 1);
        CHECK(got[0].ranks[0].job == 8);
        CHECK(b.slurm.calls.empty());
    }
    SECTION("or it has left the node") {
        rule("restart-step");
        const auto got = b.live({end_of(9, status)});
        CHECK(b.slurm.calls.empty());
        CHECK(said(got.at(0), "restart-step", "n03") == "nothing to do: job 9 does not have the node");
    }
    SECTION("no node is taken out for it, whatever a rule asks for") {
        b.rules =
            std::move(*parse_policy("site.toml", "[[rule]]\nname = \"all\"\naction = \"down\"\n").rules);
        const auto got = b.live({end_of(8, status)});
        CHECK(b.slurm.calls.empty());
        CHECK(got.at(0).advice.find("no node is taken out") != std::string::npos);
    }
    SECTION("and of what is told again and again the history keeps little") {
        rule("log");
        std::vector<event> many;
        for (std::uint64_t n = 0; n < 40; ++n) many.push_back(end_of(8, status));
        for (std::uint64_t n = 0; n < 40; ++n) many[n].position = 100 + n;
        const auto got = b.live(many);
        CHECK(got.at(0).lines == 40);
        std::string warning;
        auto kept = history::open(b.settings.history, warning);
        REQUIRE(kept);
        const auto rows = std::ranges::count_if(many, [&](const event& e) { return *kept->knows(e); });
        CHECK(rows == 1 + job_rows::most_of_a_job);
    }
}

TEST_CASE("of all jobs together the history keeps so much a minute", "[fault]") {
    job_rows rows;
    std::uint32_t kept = 0;
    for (std::uint32_t n = 0; n < 10'000; ++n) kept += rows.may_have_one(n, 1'000'000) ? 1 : 0;
    CHECK(kept == job_rows::most_in_all);
    CHECK(rows.may_have_one(1, 1'060'000));
    // The clock was set back.
    for (std::uint32_t n = 0; n < 10'000; ++n) (void)rows.may_have_one(n, 1'060'000);
    CHECK(rows.may_have_one(1, 1'000));
}

TEST_CASE("an application's fault interrupts its own job alone", "[fault]") {
    interrupting b("restart-step");
    b.trains(7);
    b.trains(8, 5);
    SECTION("which the line names") {
        const auto got = b.live({b.of_job(8)});
        CHECK(b.slurm.calls == calls{"end 8.5"});
    }
    SECTION("which is not known") {
        const auto got = b.live({b.of_job(0)});
        CHECK(b.slurm.calls.empty());
        CHECK(said(got.at(0), "restart-step", "n03") ==
              "left alone: which job's application failed is not known");
    }
    SECTION("which is not known, and may have left the node to another's") {
        b.slurm.jobs.erase(8);
        const auto got = b.live({b.of_job(0)});
        CHECK(b.slurm.calls.empty());
        CHECK(said(got.at(0), "restart-step", "n03") ==
              "left alone: which job's application failed is not known");
    }
    SECTION("which is not known, but can be no other's") {
        b.slurm.jobs.erase(8);
        b.slurm.jobs[7].exclusive = true;
        const auto got = b.live({b.of_job(0)});
        CHECK(b.slurm.calls == calls{"end 7.3"});
    }
    SECTION("which has left the node") {
        const auto got = b.live({b.of_job(9)});
        CHECK(b.slurm.calls.empty());
        CHECK(said(got.at(0), "restart-step", "n03") == "nothing to do: no job has the node");
    }
}

TEST_CASE("a job is interrupted once for what several nodes tell of", "[fault]") {
    const std::string action = GENERATE("restart-step", "requeue");
    interrupting b(action);
    b.trains(7);
    b.at_least = 2;
    auto first = b.xid79(1), second = b.xid79(2);
    second.node = "n02";
    first.line_ms = second.line_ms = clock::wall_ms() - 10;
    const auto got = b.live({first, second});
    CHECK(std::ranges::count_if(b.slurm.calls,
                                [](const auto& c) { return c == "end 7.3" || c == "requeue 7"; }) == 1);
}

TEST_CASE("interruptions have limits of their own, and rulings", "[fault]") {
    const std::string action = GENERATE("restart-step", "requeue");
    const calls done = action == "requeue" ? calls{"requeue 7", "start 7"} : calls{"end 7.3"};
    interrupting b(action);
    b.trains(7);
    b.settings.drains_per_hour = 0;
    auto got = b.live({b.xid79()}, incident_state::held);
    CHECK(b.slurm.calls.empty());
    CHECK(said(got.at(0), action, "n03") ==
          "held back: for 0 incidents jobs were interrupted or nodes swept within the hour, which is the "
          "limit");
    SECTION("approve") {
        const auto answer = b.ruled(ruling::approve);
        REQUIRE(answer);
        CHECK(*answer == "its jobs are interrupted now (" + action + "): banyan-fault explain f00001");
        CHECK(b.slurm.calls == done);
    }
    SECTION("cancel") {
        const auto answer = b.ruled(ruling::cancel);
        REQUIRE(answer);
        CHECK(*answer ==
              "its jobs are not interrupted for incident f00001 unless banyan-fault approve f00001 says so");
        b.settings.drains_per_hour = 8;
        (void)b.live({b.xid79(2)});
        CHECK(b.slurm.calls.empty());
    }
    SECTION("retry") {
        CHECK_FALSE(b.ruled(ruling::retry));
        b.settings.drains_per_hour = 8;
        (void)b.ruled(ruling::retry);  // or the controller by itself, whoever is first
        CHECK(b.slurm.calls == done);
    }
    SECTION("the hour is that of the history") {
        b.settings.drains_per_hour = 1;
        (void)b.live({});
        CHECK(b.slurm.calls == done);
        auto other = b.xid79(9);
        other.node = "n01";
        b.job(9, {"n01"}, with_spare);
        got = b.live({other}, incident_state::held);
        CHECK(b.slurm.calls == done);
        CHECK(said(got.at(1), action, "n01").starts_with("held back: for 1 incidents jobs were"));
    }
}

TEST_CASE("an open breaker keeps jobs as they are, and interruptions do not open it", "[fault]") {
    limiter l(policy_limits{});
    const auto asked = [&](step_kind step, std::uint64_t number) {
        incident i;
        i.number = number;
        i.object.node = "n" + std::to_string(number);
        i.line_ms = 1'000;
        return l.narrow({step, true, "", false, ""}, i, true, 16, 2'000);
    };
    for (std::uint64_t n = 1; n <= 8; ++n) CHECK(asked(step_kind::restart, n).allowed);
    CHECK(asked(step_kind::restart, 8).allowed);  // the rest of it
    const auto ninth = asked(step_kind::requeue, 9);
    CHECK_FALSE(ninth.allowed);
    CHECK(ninth.later);
    CHECK_FALSE(l.tripped());
    CHECK(asked(step_kind::drain, 9).allowed);
    CHECK_FALSE(l.has_room_where_nodes_stay(2'000, 9));
    CHECK(l.has_room_where_nodes_stay(2'000, 8));  // the rest of it
    CHECK(l.has_room_where_nodes_stay(2'000 + 3'600'000, 9));
    l.unspent(7);
    CHECK(l.has_room_where_nodes_stay(2'000, 9));
    l.trip(true);
    CHECK_FALSE(l.has_room_where_nodes_stay(2'000 + 3'600'000, 9));
    CHECK(asked(step_kind::restart, 8).why.starts_with("the circuit breaker is open"));
    CHECK(asked(step_kind::restart, 10).why.starts_with("the circuit breaker is open"));
}

TEST_CASE("a job that a rule requeues is followed until it runs, whoever began it", "[fault]") {
    interrupting b("requeue");
    b.trains(7);
    SECTION("by one controller") {
        const auto got = b.live({b.xid79()});
        CHECK(b.slurm.calls == calls{"requeue 7", "start 7"});
        CHECK(said(got.at(0), "requeue", "7") == "run 0 goes back into the queue");
        CHECK(said(got[0], "job", "7") == "runs again on 0 nodes");
    }
    SECTION("by two") {
        b.slurm.holding = {"n02"};  // so that it does not start
        b.enough = [&](const auto&) {
            const std::lock_guard hold(b.slurm.lock);
            return b.slurm.calls == calls{"requeue 7"};
        };
        (void)b.live({b.xid79()}, incident_state::acting);
        CHECK(b.slurm.calls == calls{"requeue 7"});
        b.slurm.holding.clear();
        b.slurm.jobs[7].phase = job_phase::pending;
        b.slurm.jobs[7].nodes.clear();
        b.enough = [](const auto&) { return true; };
        const auto got = b.live({});
        CHECK(b.slurm.calls == calls{"requeue 7", "start 7"});
        CHECK(said(got.at(0), "job", "7") == "runs again on 0 nodes");
    }
    SECTION("not one whose run ends before it is written down") {
        b.slurm.when_needed = [&] { b.slurm.jobs[7].phase = job_phase::ended; };
        const auto got = b.live({b.xid79()});
        CHECK(b.slurm.calls.empty());
        CHECK(said(got.at(0), "requeue", "7") == "not done: run 0 is over");
        CHECK(std::ranges::none_of(got[0].actions, is_interruption));  // the limits have room for another
    }
    SECTION("not one that may not be") {
        b.slurm.jobs[7].may_requeue = false;
        const auto got = b.live({b.xid79()});
        CHECK(b.slurm.calls.empty());
        CHECK(said(got.at(0), "requeue", "7") == "left alone: it may not be requeued");
    }
}

TEST_CASE("a node goes out when more is asked for while its job comes back from the queue", "[fault]") {
    interrupting b("requeue");
    b.rules = std::move(*parse_policy("site.toml",
                                      "[[rule]]\nname = \"again\"\nxid = 48\naction = \"requeue\"\n"
                                      "[[rule]]\nname = \"out\"\nxid = 79\naction = \"drain\"\n")
                             .rules);
    b.trains(7);
    b.slurm.holding = {"n02"};  // so that it does not start
    auto first = event_of(gpu_line(3, "48, pid=1, name=p, DBE"), clock::wall_ms(), 1);
    const auto got = b.live_twice(first, {"requeue 7"}, b.xid79(2), [&](const auto&) {
        return b.called({"requeue 7", "drain n03"});
    });
    REQUIRE(got.size() == 1);
    CHECK(got[0].node_out_ms != 0);
    // Its job is followed still, which another controller is to go on with.
    CHECK(got[0].state == incident_state::acting);
    CHECK(got[0].find_action("job", "7") == nullptr);
}

}  // namespace test_interruption
