// SPDX-License-Identifier: BSD-3-Clause
//
// What the controller does about a node's fault and the jobs there, on a fake cluster: what is done, what is
// left alone, and that nothing is done twice.
#include <catch2/catch.hpp>

#include "test/unit/fault/controller_bench.hpp"

namespace test_controller {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

TEST_CASE("79 takes the node out once and leaves a job with spares to banyan-run", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
    const auto e = b.xid79();
    auto got = b.live({e, e});
    REQUIRE(got.size() == 1);
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    CHECK(b.slurm.nodes["n03"].reason == "banyan: gpu: Xid 79 GPU 3 fell off the bus [f00001]");
    CHECK(got[0].jobs == std::vector<std::uint64_t>{7});
    CHECK(got[0].sealed_ms != 0);
    CHECK(got[0].node_out_ms >= got[0].sealed_ms);
    REQUIRE(got[0].find_action("job", "7"));
    CHECK(got[0].find_action("job", "7")->result.find("3 nodes left, 3 needed") != std::string::npos);
    // The agent sends it again to the next controller: nothing happens.
    got = b.live({e});
    CHECK(got.size() == 1);
    CHECK(b.slurm.calls.size() == 1);
}

TEST_CASE("the ranks on the node are kept as they were before it went out", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
    b.slurm.ranks[7] = node_ranks{4, 32, {16, 17, 18, 19}};
    const job_ranks known{7, 0, 4, 32, "16-19", ""};
    SECTION("over a second controller, too, which finds the node without the job") {
        CHECK(b.live({b.xid79()}).front().ranks == std::vector{known});
        CHECK(b.live({b.xid79()}).front().ranks == std::vector{known});
    }
    SECTION("for one of two jobs they are not known, which is said") {
        b.job(8, {"n03"}, std::nullopt);
        b.slurm.ranks[8] = fail(errc::not_found, "job 8 was placed without a plan");
        const auto got = b.live({b.xid79()}).front().ranks;
        CHECK(got == std::vector{known, job_ranks{8, 0, 0, 0, "", "job 8 was placed without a plan"}});
    }
    SECTION("in dry run, too") {
        b.settings.dry_run = true;
        CHECK(b.live({b.xid79()}).front().ranks == std::vector{known});
    }
    SECTION("of the accused job alone, where only the application is") {
        b.job(8, {"n03"}, std::nullopt);
        auto e = event_of(gpu_line(3, "31, pid=1, name=p, MMU Fault"), clock::wall_ms(), 1);
        e.job = 7;
        CHECK(b.live({e}).front().ranks == std::vector{known});
        CHECK(b.slurm.calls.empty());
    }
}

TEST_CASE("an alert names the jobs and ranks that it concerns, and touches neither", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
    b.slurm.ranks[7] = node_ranks{4, 32, {16, 17, 18, 19}};
    const auto alert = event_of(gpu_line(3, "122, SPI PMU RPC read failure"), clock::wall_ms(), 1);
    REQUIRE(precedence_of(alert.fault) == precedence::alert);
    SECTION("as Slurm has them") {
        const auto got = b.live({alert}).front();
        CHECK(got.jobs == std::vector<std::uint64_t>{7});
        CHECK(got.ranks == std::vector{job_ranks{7, 0, 4, 32, "16-19", ""}});
        CHECK(got.sealed_ms == 0);
    }
    SECTION("or says why they are not known") {
        b.slurm.jobs_unknown = true;
        const auto got = b.live({alert}).front();
        CHECK(got.jobs.empty());
        REQUIRE(got.find_action("jobs", "n03"));
        CHECK(got.find_action("jobs", "n03")->result.starts_with("not known: "));
    }
    CHECK(b.slurm.calls.empty());
}

TEST_CASE("too few nodes left: requeued, and started now", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, without);
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "requeue 7", "start 7"});
    REQUIRE(got.size() == 1);
    CHECK(got[0].find_action("start_now", "7"));
}

TEST_CASE("a StartTime that somebody gives a job in the queue stays", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, without);
    bool seen = false;
    const auto tomorrow = [&](job_status& job) {
        job.start_time = job.begin_time = clock::wall_ms() / 1000 + 86'400;
    };
    SECTION("after it was seen there with Slurm's own") {
        b.slurm.after_job = [&] {
            auto& job = b.slurm.jobs[7];
            if (job.phase == job_phase::pending && std::exchange(seen, true)) tomorrow(job);
        };
    }
    SECTION("while its last run was ended") {
        b.slurm.holding = {"n02"};
        b.slurm.after_job = [&] {
            auto& job = b.slurm.jobs[7];
            if (job.phase != job_phase::completing) return;
            job.phase = job_phase::pending;
            job.nodes.clear();
            tomorrow(job);
        };
    }
    b.enough = [](const auto& all) { return !all.empty() && all[0].find_action("job", "7"); };
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "requeue 7"});
    REQUIRE(got.size() == 1);
    REQUIRE(got[0].find_action("job", "7"));
    CHECK(got[0].find_action("job", "7")->result ==
          "waits for its StartTime, which is not the one that Slurm gave it: left alone");
}

TEST_CASE("a job that is held in the queue waits for a person, not for nodes", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, without);
    b.slurm.when_requeued = [&] { b.slurm.jobs[7].held = "launch failed requeued held"; };
    b.enough = [](const auto& all) { return !all.empty() && all[0].find_action("job", "7"); };
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "requeue 7"});
    CHECK(results_of(got.at(0), "job") ==
          "is held in the queue (launch failed requeued held): scontrol release 7");
}

TEST_CASE("how many nodes a job needs is asked until slurmctld tells", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, without);
    b.slurm.unanswered = 2;
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "requeue 7", "start 7"});
}

TEST_CASE("a requeue that slurmctld does not take is asked for again", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, without);
    b.slurm.requeue_fails = 2;
    SECTION("until it does") {
        (void)b.live({b.xid79()});
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "requeue 7", "start 7"});
    }
    SECTION("or the time is over") {
        b.slurm.requeue_fails = 1'000'000;
        b.settings.verify.settling = std::chrono::milliseconds(500);
        const auto got = b.live({b.xid79()});
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
        REQUIRE(got.at(0).find_action("job", "7"));
        CHECK(got[0].find_action("job", "7")->result == "not requeued: slurmctld is busy: left alone");
    }
}

TEST_CASE("time in which slurmctld is away is not taken from a job that settles", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
    b.settings.verify.settling = std::chrono::milliseconds(200);
    b.slurm.away = true;
    const auto back = clock::now() + std::chrono::seconds(1);
    b.enough = [&](const auto& all) {
        const std::lock_guard hold(b.slurm.lock);
        if (clock::now() > back) b.slurm.away = false;
        return !all.empty() && all[0].find_action("job", "7");
    };
    const auto got = b.live({b.xid79()});
    REQUIRE(got.at(0).find_action("job", "7"));
    CHECK(got[0].find_action("job", "7")->result.starts_with("goes on: 3 nodes left"));
}

TEST_CASE("a job whose plan cannot be believed is left alone, which is said", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, fail(errc::denied, "job 7 has two plans"));
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    REQUIRE(got.size() == 1);
    REQUIRE(got[0].find_action("job", "7"));
    CHECK(got[0].find_action("job", "7")->result == "job 7 has two plans: left alone");
}

TEST_CASE("a job without a plan that has lost a node goes on", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, std::nullopt);
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    REQUIRE(got[0].find_action("job", "7"));
    CHECK(got[0].find_action("job", "7")->result.starts_with("goes on: 3 nodes left; "));
}

TEST_CASE("an incident ends with what became of the job", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
    b.slurm.without_banyan_run = true;
    b.slurm.after_job = [&] {
        auto& job = b.slurm.jobs[7];
        if (job.nodes.size() == 4 || job.phase == job_phase::ended) return;
        job.phase = job_phase::ended;  // its script saw the step fail
        job.nodes.clear();
        job.end = "FAILED, exit code 137";
    };
    b.enough = [](const auto& all) {
        return !all.empty() && (all[0].find_action("verify", "7") ||
                                results_of(all[0], "job").find("ended") != std::string::npos);
    };
    const auto got = b.live({b.xid79()});
    REQUIRE(got.size() == 1);
    const auto said = results_of(got[0], "job") + results_of(got[0], "verify");
    CHECK(said.find("banyan-run puts") == std::string::npos);
    CHECK(said.find("ended: FAILED, exit code 137") != std::string::npos);
}

TEST_CASE("dry run, foreign reasons and application errors change nothing", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
    SECTION("dry run") {
        b.settings.dry_run = true;
        const auto got = b.live({b.xid79()});
        REQUIRE(got.size() == 1);
        CHECK(got[0].find_action("node_down", "n03")->result.starts_with("dry run: would set n03 DOWN"));
        CHECK(got[0].advice.find("taken out now") == std::string::npos);
        CHECK(got[0].advice.find("scontrol update NodeName=n03 State=DOWN") != std::string::npos);
    }
    SECTION("an administrator drained it") {
        b.slurm.nodes["n03"] = {"n03", false, true, "fan test"};
        const auto got = b.live({b.xid79()});
        CHECK(got[0].find_action("node_down", "n03")->result ==
              "done: its jobs leave it; it keeps the reason \"fan test\"");
        CHECK(b.slurm.nodes["n03"].reason == "fan test");
        CHECK(b.slurm.calls == std::vector<std::string>{"release n03"});
        b.slurm.calls.clear();
    }
    SECTION("an administrator has it, and nobody else") {
        b.slurm.nodes["n03"] = {"n03", false, true, "fan test"};
        b.slurm.jobs.clear();
        const auto got = b.live({b.xid79()});
        CHECK(got[0].find_action("node_down", "n03")->result ==
              "left alone: the node has the reason \"fan test\"");
    }
    SECTION("application") {
        const auto got = b.live({event_of(gpu_line(3, "31, pid=1, name=p, MMU Fault"), clock::wall_ms(), 5)});
        CHECK(got[0].actions.empty());
    }
    SECTION("an old line") {
        auto e = b.xid79();
        e.line_ms -= 3'600'000;
        const auto got = b.live({e});
        CHECK(got[0].find_action("node_down", "n03")->result.starts_with("held back: the line is"));
    }
    CHECK(b.slurm.calls.empty());
}

TEST_CASE("what was decided is not decided again by a harmless line after a restart", "[fault]") {
    controller_bench b;
    (void)b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    b.slurm.nodes["n03"] = {"n03", false, false, ""};  // by scontrol, unknown to us
    const auto got = b.live({event_of(gpu_line(3, "45, pid=1"), clock::wall_ms() + 60'000, 9)});
    CHECK(got.size() == 1);
    CHECK(b.slurm.calls.size() == 1);
}

TEST_CASE("an application's error names the jobs that had the node, and touches neither", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n03"}, with_spare);
    b.job(8, {"n02"}, with_spare);
    for (const std::string& line :
         {gpu_line(3, "31, pid=1, name=a, Ch 00000008, MMU Fault"),
          gpu_line(3, "13, pid=1, name=a, Graphics Exception"),
          std::string("Memory cgroup out of memory: Killed process 4 (a) total-vm:1kB")}) {
        CAPTURE(line);
        const auto got = b.live({event_of(line, clock::wall_ms(), std::hash<std::string>()(line) % 1000)});
        REQUIRE(!got.empty());
        CHECK(got.back().jobs == std::vector<std::uint64_t>{7});
        CHECK(got.back().actions.empty());
    }
    CHECK(b.slurm.calls.empty());
}

TEST_CASE("a fault that needs a reset takes jobs that can go on elsewhere off the node", "[fault]") {
    controller_bench b;
    const auto reset = event_of(gpu_line(3, "119, Timeout"), clock::wall_ms(), 5);
    SECTION("a spare is there") {
        b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
        const auto got = b.live({reset});
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03", "down n03"});
        CHECK(got[0].find_action("job", "7")->result.find("3 nodes left, 3 needed") != std::string::npos);
    }
    SECTION("no spare: from the queue") {
        b.job(7, {"n01", "n02", "n03", "n04"}, without);
        (void)b.live({reset});
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03", "down n03", "requeue 7", "start 7"});
    }
    SECTION("an administrator had drained it") {
        b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
        b.slurm.nodes["n03"] = {"n03", false, true, "fan test"};
        (void)b.live({reset});
        CHECK(b.slurm.calls == std::vector<std::string>{"release n03"});
        CHECK(b.slurm.nodes["n03"].reason == "fan test");
    }
    SECTION("neither spare nor queue") {
        b.job(7, {"n01", "n02", "n03", "n04"}, without);
        b.slurm.jobs[7].may_requeue = false;
        const auto got = b.live({reset});
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03"});
        CHECK(got[0].find_action("job", "n03")->result ==
              "job 7 has no spare, and it may not be requeued: the jobs of the node stay on it");
    }
    SECTION("a job without a plan keeps all of them there") {
        b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
        b.job(8, {"n03"}, std::nullopt);
        (void)b.live({reset});
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03"});
    }
    SECTION("a job without a plan starts there meanwhile") {
        b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
        b.slurm.when_needed = [&] {
            if (!b.slurm.jobs.contains(8)) b.job(8, {"n03"}, std::nullopt);
        };
        const auto got = b.live({reset});
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03"});
        CHECK(b.slurm.jobs[8].nodes == std::vector<std::string>{"n03"});
        CHECK(results_of(got[0], "job") ==
              "job 8 was placed without a plan: the jobs of the node stay on it");
        CHECK(results_of(got[0], "node_drain").starts_with("done: "));
        CHECK(got[0].node_out_ms != 0);
    }
    SECTION("a job that can leave starts there meanwhile") {
        b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
        b.slurm.when_needed = [&] {
            if (!b.slurm.jobs.contains(8)) b.job(8, {"n01", "n03"}, 1);
        };
        const auto got = b.live({reset});
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03", "down n03"});
        CHECK(got[0].jobs == std::vector<std::uint64_t>{7, 8});
        CHECK(got[0].find_action("job", "8"));
    }
    SECTION("which jobs have it in the end is not told at first") {
        b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
        b.slurm.when_drained = [&, first = true]() mutable {
            b.slurm.jobs_unknown = std::exchange(first, false);
        };
        b.slurm.when_asked_for_jobs = [&] { b.slurm.jobs_unknown = false; };
        const auto got = b.live({reset});
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03", "down n03"});
        CHECK(results_of(got[0], "node_down").starts_with("held back: slurmctld does not answer; done: "));
    }
    SECTION("another incident has drained it, and a job without a plan is there in the end") {
        b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
        b.slurm.nodes["n03"] = {"n03", false, true, "banyan: gpu: Xid 48 GPU 1 [f00099]"};
        b.slurm.when_needed = [&] {
            if (!b.slurm.jobs.contains(8)) b.job(8, {"n03"}, std::nullopt);
        };
        (void)b.live({reset});
        CHECK(b.slurm.calls.empty());
        CHECK(b.slurm.nodes["n03"].reason.ends_with("[f00099]"));
    }
    SECTION("nobody is on it") {
        (void)b.live({reset});
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03"});
    }
    SECTION("slurmctld does not tell at first") {
        b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
        b.slurm.unanswered = 1;
        (void)b.live({reset});
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03", "down n03"});
    }
}

TEST_CASE("a fault that shows again after somebody returned the node counts again", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
    (void)b.live({b.xid79(1)});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    auto late = b.xid79(2);
    late.line_ms += 60'000;
    SECTION("it is out still") {
        const auto got = b.live({late});
        CHECK(got.size() == 1);
        CHECK(b.slurm.calls.size() == 1);
        CHECK(std::ranges::count(got[0].actions, "job", &action_record::what) == 1);
    }
    SECTION("by scontrol, of which nobody tells us") {
        b.slurm.nodes["n03"] = {"n03", false, false, ""};
        const auto got = b.live({late});
        CHECK(got.size() == 1);
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "down n03"});
    }
    SECTION("by banyan-fault, and the next controller is told") {
        b.slurm.nodes["n03"] = {"n03", false, false, ""};
        {
            history book = *history::open(b.settings.history, b.reason);
            auto seen_to = *book.find(1).value();
            seen_to.closed_ms = late.line_ms + 6'000;
            seen_to.closed_by = "uid 7";
            REQUIRE(book.keep(seen_to));
        }
        const bool is_new = GENERATE(false, true);
        CAPTURE(is_new);
        late.written_ms = late.line_ms + (is_new ? 6'001 : 5'999);
        b.at_least = is_new ? 2 : 1;
        const auto got = b.live({late});
        CHECK(got.size() == b.at_least);
        CHECK(got[0].lines == (is_new ? 1 : 2));
        CHECK(b.slurm.calls.size() == b.at_least);
        CHECK(b.live({}).at(0).lines == got[0].lines);  // it is kept
    }
}

TEST_CASE("how old a line is goes by the controller's clock", "[fault]") {
    controller_bench b;
    constexpr std::int64_t hour = 3'600'000;
    auto e = b.xid79();
    e.written_ms = e.line_ms;
    SECTION("the node's is behind") {
        e.line_ms -= hour;
        (void)b.live({e});
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    }
    SECTION("the node's is ahead, and the line is old") {
        *e.written_ms -= hour;
        const auto got = b.live({e});
        CHECK(b.slurm.calls.empty());
        CHECK(results_of(got.at(0), "node_down").starts_with("held back: the line is 36"));
    }
    SECTION("the next controller knows it, too") {
        e.line_ms -= hour;
        b.slurm.refused = 1'000'000;
        CHECK(b.live({e}, incident_state::held).at(0).written_ms == *e.written_ms);
        b.slurm.refused = 0;
        const auto got = b.live({}).at(0);
        CHECK(got.written_ms == *e.written_ms);
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    }
    SECTION("seen once more, it is the newest line that counts") {
        e.line_ms -= hour;
        *e.written_ms -= hour / 2;
        auto again = b.xid79(2);
        again.line_ms -= hour / 2;
        again.written_ms = clock::wall_ms();
        const auto got = b.live({e, again});
        CHECK(got.size() == 1);
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    }
}

}  // namespace test_controller
