// SPDX-License-Identifier: BSD-3-Clause
//
// How a job that is said to go on is followed, on a fake cluster and with a training that the test moves on.
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>
#include <unistd.h>

#include "fault/controller/verification.hpp"
#include "fault/sources/log_line.hpp"
#include "test/held_run.hpp"
#include "test/scratch_path.hpp"
#include "test/unit/fault/fake_cluster.hpp"

namespace test_verification {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;
using std::chrono::milliseconds;

namespace {

class followed {
  public:
    banyan::testing::held_run time;
    fake_state slurm;
    std::optional<std::int64_t> trained = 7;  // what the daemons tell
    int told = 0;                             // how often they were asked
    std::function<void(int)> when_asked = [](int) {};
    std::vector<holders> held_up;
    verification_limits limits{milliseconds(300), milliseconds(50), milliseconds(400), milliseconds(10)};

    followed() {
        job_status job;
        job.id = 5;
        job.phase = job_phase::running;
        job.nodes = {"n01", "n02", "n03"};
        job.may_requeue = true;
        slurm.jobs[5] = job;
        slurm.jobs[5].nodes = {"n01", "n03"};
    }
    ~followed() { std::filesystem::remove_all(dir_); }

    /// What was recorded with the incident about n02.
    std::vector<action_record> actions() {
        begin();
        live([](const incident&) { return false; });
        return found.actions;
    }
    /// The incident about n02, in the history.
    void begin() {
        std::filesystem::create_directories(dir_);
        found.number = 1;
        found.object.node = "n02";
        found.line_ms = 1'000;
        found.incident_ms = 1'010;
        std::string warning;
        REQUIRE(history::open((dir_ / "history.db").string(), warning)->keep(found));
        before_ = slurm.jobs[5];
        before_.nodes = {"n01", "n02", "n03"};
    }
    /// A controller's life, until the job was followed to its end, or `killed` says so. Then `found` is what
    /// the history has.
    bool live(const std::function<bool(const incident&)>& killed) {
        bool over = false;
        {
            asio::io_context io;
            asio::thread_pool pool(2);
            records known(io, std::chrono::seconds(30), std::make_shared<metrics>());
            limiter limits_of_nodes{policy_limits{}};
            REQUIRE(known.open((dir_ / "history.db").string(), limits_of_nodes));
            fake_cluster cluster(slurm);
            const verification_tools tools{
                {io, pool, cluster, known, limits,
                 [this](std::uint64_t, const job_status&, const holders& h) { held_up.push_back(h); }},
                [this](std::uint32_t, std::vector<std::string> nodes) { return tell(std::move(nodes)); },
                others};
            if (!other.actions.empty()) known.incidents().open(other, clock::wall_ms());
            const auto ended = [&](const std::exception_ptr&) { over = true; };
            const auto kept = known.incidents().find(1)->followed;
            if (kept.empty())
                asio::co_spawn(io, verify_job(tools, 1, before_), ended);
            else
                asio::co_spawn(io, verify_again(tools, 1, kept.front()), ended);
            CHECK(time.until(io, [&] { return over || killed(*known.incidents().find(1)); }));
            pool.join();
            known.finish();
        }
        std::string warning;
        found = *history::open((dir_ / "history.db").string(), warning)->find(1).value();
        CHECK(found.followed.empty() == over);
        return over;
    }
    std::string path() const { return (dir_ / "history.db").string(); }
    incident found, other;
    std::shared_ptr<verifications> others = std::make_shared<verifications>();

  private:
    task<std::optional<std::int64_t>> tell(std::vector<std::string> nodes) {
        CHECK(std::ranges::find(nodes, "n02") == nodes.end());
        when_asked(told++);
        co_return trained;
    }
    std::filesystem::path dir_ = banyan::testing::scratch_path("verification");
    job_status before_;
};

}  // namespace

TEST_CASE("a job goes on when a new step has trained further", "[fault]") {
    followed f;
    f.slurm.steps[5] = {{1, {"n01", "n02"}}, {2, {"n01", "n03"}}};  // the old one still has the lost node
    f.when_asked = [&](int times) { f.trained = times < 3 ? 7 : 9; };
    const auto found = f.actions();
    REQUIRE(found.size() == 1);
    CHECK(found[0].what == "verify");
    CHECK(found[0].target == "5");
    CHECK(found[0].result.starts_with("step 5.2 runs on 2 nodes; trains again: step 9 complete "));
    CHECK(found[0].result.find("(incident 0.01, new step ") != std::string::npos);
    CHECK(f.told >= 4);
}

TEST_CASE("a job goes on from an older training step when the newer ones were lost", "[fault]") {
    followed f;
    f.trained = 1000;
    f.slurm.steps[5] = {{2, {"n01", "n03"}}};
    SECTION("which the new step tells when it has begun") {
        f.when_asked = [&](int times) { f.trained = times < 2 ? 1000 : times < 4 ? 500 : 501; };
        const auto found = f.actions();
        REQUIRE(found.size() == 1);
        CHECK(found[0].result.starts_with("step 5.2 runs on 2 nodes; trains again: step 501 complete "));
    }
    SECTION("up to the one that was known before") {
        f.when_asked = [&](int times) { f.trained = times < 2 ? 1000 : times < 5 ? 980 : 1000; };
        const auto found = f.actions();
        REQUIRE(found.size() == 1);
        CHECK(found[0].result.starts_with("step 5.2 runs on 2 nodes; trains again: step 1000 complete "));
    }
    SECTION("but not where one answers late who knows more") {
        f.when_asked = [&](int times) { f.trained = times == 2 ? 980 : times == 3 ? 990 : 1000; };
        const auto found = f.actions();
        REQUIRE(found.size() == 1);
        CHECK(found[0].result.find("no newer training step is complete") != std::string::npos);
    }
    SECTION("but not where merely those answered who know less") {
        f.when_asked = [&](int times) { f.trained = times == 2 ? 999 : times == 3 ? -1 : 1000; };
        const auto found = f.actions();
        REQUIRE(found.size() == 1);
        CHECK(found[0].result.find("no newer training step is complete") != std::string::npos);
    }
}

TEST_CASE("a job without a new step is requeued, once", "[fault]") {
    followed f;
    f.slurm.steps[5] = {{1, {"n01", "n02"}}};
    const auto found = f.actions();
    std::vector<std::string> what;
    for (const auto& a : found) what.push_back(a.what);
    CHECK(std::ranges::count(what, "requeue") == 1);
    CHECK(f.slurm.jobs[5].restarts == 1);
    REQUIRE_FALSE(found.empty());
    CHECK(found.back().result == "has no new step after it was requeued: look at the job");
}

TEST_CASE("one that may not be requeued is left, which is said", "[fault]") {
    followed f;
    f.slurm.jobs[5].may_requeue = false;
    const auto found = f.actions();
    REQUIRE(found.size() == 1);
    CHECK(found[0].result == "has no new step in 0 s, and it may not be requeued: look at the job");
    CHECK(f.slurm.calls.empty());
}

TEST_CASE("a step that does not train is said, and left alone", "[fault]") {
    followed f;
    f.slurm.steps[5] = {{2, {"n01", "n03"}}};
    const auto found = f.actions();
    REQUIRE(found.size() == 1);
    CHECK(found[0].result.starts_with(
        "step 5.2 runs on 2 nodes, and no newer training step is complete after"));
    CHECK(f.slurm.calls.empty());
}

TEST_CASE("a job without checkpoints is believed when its step runs", "[fault]") {
    followed f;
    f.trained = std::nullopt;
    f.slurm.steps[5] = {{2, {"n01", "n03"}}};
    const auto found = f.actions();
    REQUIRE(found.size() == 1);
    CHECK(found[0].result ==
          "step 5.2 runs on 2 nodes; whether it trains is not known: no checkpoint daemon told");
}

TEST_CASE("a helper's step is none of the training", "[fault]") {
    followed f;
    f.slurm.needed[5] = 2;
    f.when_asked = [&](int times) { f.trained = times < 3 ? 7 : 9; };
    node_ranks ranks;
    ranks.step = 4;
    SECTION("it holds nothing up: the job goes one rung down") {
        f.slurm.steps[5] = {{1, {"n01", "n02"}}, {2, {"n01"}}};
        const auto found = f.actions();
        CHECK(std::ranges::count(f.slurm.calls, "requeue 5") == 1);
        REQUIRE_FALSE(found.empty());
        CHECK(found.back().result == "has no new step after it was requeued: look at the job");
    }
    SECTION("nor is that of a run that came after it") {
        f.begin();
        f.slurm.jobs[5].restarts = 1;
        f.slurm.steps[5] = {{2, {"n01"}}};
        f.live([](const incident&) { return false; });
        CHECK(f.found.actions.back().result == "has no new step after it was requeued: look at the job");
    }
    SECTION("the training begins beside it") {
        f.slurm.steps[5] = {{2, {"n01"}}, {3, {"n01", "n03"}}, {4, {"n01", "n03"}}};
        f.slurm.ranks.insert_or_assign(5, ranks);
        CHECK(f.actions().back().result.starts_with("step 5.4 runs on 2 nodes; trains again"));
    }
    SECTION("it has other tasks than the plan") {
        f.slurm.steps[5] = {{2, {"n01"}}, {3, {"n01", "n03"}}};
        CHECK(f.actions().back().result.starts_with("step 5.3 runs on 2 nodes; trains again"));
    }
    SECTION("Slurm does not tell for a time, which does not count") {
        f.slurm.steps[5] = {{3, {"n01", "n03"}}};
        f.slurm.unanswered = 50;
        CHECK(f.actions().back().result.starts_with("step 5.3 runs on 2 nodes; trains again"));
    }
    CHECK(f.held_up.empty());
}

TEST_CASE("a job that ends is followed no longer", "[fault]") {
    followed f;
    f.slurm.jobs[5].phase = job_phase::ended;
    const auto got = f.actions();
    REQUIRE(got.size() == 1);  // what became of it
    CHECK(got[0].what == "verify");
    CHECK(got[0].result.starts_with("has ended"));
    CHECK(f.slurm.calls.empty());
}

TEST_CASE("the next controller goes on with what one was following when it was killed", "[fault]") {
    followed f;
    f.begin();
    const auto looks = [&](int more) {
        return [&f, until = f.told + more](const incident&) { return f.told >= until; };
    };
    f.slurm.steps[5] = {{2, {"n01", "n03"}}};
    CHECK_FALSE(f.live(looks(2)));  // killed while it waits for the training
    REQUIRE(f.found.followed.size() == 1);
    CHECK(f.found.followed[0].nodes == std::vector<std::string>{"n01", "n02", "n03"});
    CHECK(f.found.actions.empty());
    f.when_asked = [&, from = f.told](int times) { f.trained = times < from + 3 ? 8 : 9; };
    CHECK(f.live([](const incident&) { return false; }));
    REQUIRE(f.found.actions.size() == 1);
    CHECK(f.found.actions[0].result.starts_with("step 5.2 runs on 2 nodes; trains again: step 9 complete "));
}

TEST_CASE("the next rung is not taken again by the next controller, and is taken in time", "[fault]") {
    followed f;
    f.limits.step = milliseconds(1'000);
    f.begin();
    f.slurm.holding = {"n03"};
    f.slurm.steps[5] = {{1, {"n01", "n02", "n03", "n04"}}};
    const auto requeued = [&](const incident& i) {
        const std::lock_guard hold(f.slurm.lock);
        return i.find_action("requeue", "5") != nullptr && !f.slurm.calls.empty();
    };
    CHECK_FALSE(f.live([](const incident& i) { return !i.followed.empty(); }));  // killed at once
    CHECK_FALSE(f.live(requeued));                                               // killed with the requeue
    CHECK(f.slurm.calls == std::vector<std::string>{"requeue 5"});
    REQUIRE(f.found.followed.size() == 1);
    REQUIRE(f.held_up.size() == 1);
    CHECK(f.held_up.front().taken_out);
    CHECK(f.held_up.front().where == std::vector<std::string>{"n03"});
    f.held_up.clear();
    // n03 still does not end it: that is told, though the controller is another one.
    CHECK_FALSE(f.live([&](const incident&) { return !f.held_up.empty(); }));
    CHECK_FALSE(f.held_up.front().taken_out);
    CHECK(f.held_up.front().where == std::vector<std::string>{"n03"});
    {
        const std::lock_guard hold(f.slurm.lock);
        f.slurm.jobs[5].phase = job_phase::pending;
    }
    CHECK(f.live([](const incident&) { return false; }));
    CHECK(std::ranges::count(f.slurm.calls, "requeue 5") == 1);
    CHECK(f.found.actions.back().result == "has no new step after it was requeued: look at the job");
}

TEST_CASE("a later run of the job has ended the one before: nobody holds it up", "[fault]") {
    followed f;
    f.begin();
    f.slurm.jobs[5].restarts = 1;
    f.slurm.jobs[5].nodes = {"n01", "n02", "n03"};
    f.slurm.holding = {"n03"};
    SECTION("any step of it counts, one with the node that was lost, too") {
        f.slurm.steps[5] = {{1, {"n01", "n02", "n03"}}};
        f.when_asked = [&](int times) { f.trained = times < 3 ? 7 : 9; };
        f.live([](const incident&) { return false; });
        REQUIRE(f.found.actions.size() == 1);
        CHECK(f.found.actions[0].result.starts_with("step 5.1 runs on 3 nodes; trains again"));
    }
    SECTION("it has none yet") {
        f.live([](const incident&) { return false; });
    }
    CHECK(f.held_up.empty());
    CHECK(f.slurm.asked.empty());
}

TEST_CASE("what could not be looked at is no fact: it is said once, and looked at again", "[fault]") {
    followed f;
    f.limits.step = milliseconds(60);
    f.slurm.jobs[5].nodes = {"n01", "n03", "n04", "n05"};
    f.slurm.steps[5] = {{1, {"n01", "n02", "n03", "n04", "n05"}}};
    f.slurm.unreachable = {"n04"};
    f.begin();
    SECTION("for good") {
        const bool holds = GENERATE(false, true);
        if (holds) f.slurm.holding = {"n03"};
        f.live([](const incident&) { return false; });
        CHECK(f.slurm.calls.empty());
        REQUIRE(f.held_up.size() == 1);
        CHECK_FALSE(f.held_up[0].taken_out);
        CHECK(f.held_up[0].why_not ==
              "1 of the 4 nodes could not be looked at (n04 could not be looked at), and none is taken out "
              "on a "
              "doubt");
        REQUIRE(f.found.actions.size() == 1);
        CHECK(f.found.actions[0].result.find("which nodes have not ended its last run is not known") !=
              std::string::npos);
    }
    SECTION("for a moment") {
        f.slurm.holding = {"n03"};
        f.live([&](const incident&) {
            const std::lock_guard hold(f.slurm.lock);
            if (!f.held_up.empty()) f.slurm.unreachable.clear();
            return f.held_up.size() == 2;
        });
        REQUIRE(f.held_up.size() == 2);
        CHECK(f.held_up[1].taken_out);
        CHECK(f.held_up[1].where == std::vector<std::string>{"n03"});
        CHECK(f.held_up[1].asked == 4);
        CHECK(f.held_up[1].known_by == "processes are left on n03");
    }
}

TEST_CASE("a job is requeued once for a failure, whoever did it and whether or not it was written down",
          "[fault]") {
    followed f;
    f.begin();
    SECTION("it runs again, and nobody wrote why") { f.slurm.jobs[5].restarts = 1; }
    SECTION("in another incident, while this one was followed") {
        f.other.actions = {{"requeue", "5", clock::wall_ms() + 60'000, "no new step in 45 s"}};
    }
    f.live([](const incident&) { return false; });
    CHECK(f.slurm.calls.empty());
    REQUIRE_FALSE(f.found.actions.empty());
    CHECK(f.found.actions.back().result == "has no new step after it was requeued: look at the job");
}

TEST_CASE("what was written down, and not done, is done by the next controller", "[fault]") {
    followed f;
    f.begin();
    f.slurm.steps[5] = {{1, {"n01", "n02"}}};
    const bool answers = GENERATE(true, false);
    // Killed between its record and slurmctld, which is just away.
    f.slurm.requeue_fails = 1'000'000;
    CHECK_FALSE(f.live([](const incident& i) { return i.find_action("requeue", "5") != nullptr; }));
    CHECK(f.slurm.calls.empty());
    REQUIRE(f.found.followed.size() == 1);
    f.slurm.requeue_fails = answers ? 0 : 3;
    CHECK(f.live([](const incident&) { return false; }));
    CHECK(std::ranges::count(f.slurm.calls, "requeue 5") == 1);
    CHECK(f.slurm.jobs[5].restarts == 1);
    CHECK(std::ranges::count(f.found.actions, "requeue", &action_record::what) == 1);
}

TEST_CASE("a requeue that Slurm refuses is tried for as long as a step is waited for", "[fault]") {
    followed f;
    f.slurm.requeue_fails = 1'000'000;
    const auto found = f.actions();
    REQUIRE(found.size() == 2);
    CHECK(found.back().what == "requeue");
    CHECK(found.back().result == "not done: slurmctld is busy");
    CHECK(1'000'000 - f.slurm.requeue_fails > 1);
}

TEST_CASE("the next rung waits for a slurmctld that is away", "[fault]") {
    followed f;
    f.begin();
    std::optional<clock::time_point> away;
    f.live([&](const incident& i) {
        const auto now = clock::now();
        if (!away && i.find_action("requeue", "5")) away = now;
        const std::lock_guard hold(f.slurm.lock);
        f.slurm.away = away && now < *away + milliseconds(1'000);
        return false;
    });
    CHECK(std::ranges::count(f.slurm.calls, "requeue 5") == 1);
    CHECK(std::ranges::count(f.found.actions, "requeue", &action_record::what) == 1);
}

TEST_CASE("a slurmctld that is away now and then makes nobody wait for ever", "[fault]") {
    followed f;
    f.begin();
    f.slurm.steps[5] = {{1, {"n01", "n02"}}};
    const auto begun = clock::now();
    f.live([&](const incident&) {
        const auto gone = clock::now() - begun;
        const std::lock_guard hold(f.slurm.lock);
        f.slurm.away = gone % milliseconds(150) < milliseconds(30);
        return !f.slurm.calls.empty() || gone > milliseconds(5'000);
    });
    REQUIRE_FALSE(f.slurm.calls.empty());
    CHECK(f.slurm.calls.front() == "requeue 5");
}

TEST_CASE("a newer failure of the job is heard while slurmctld is away", "[fault]") {
    followed f;
    f.begin();
    f.live([](const incident& i) { return !i.followed.empty(); });
    f.slurm.away = true;
    const auto begun = clock::now();
    // This controller's, which begins by asking for the job.
    CHECK(f.live([&](const incident&) {
        const auto gone = clock::now() - begun;
        if (gone > milliseconds(300)) f.others->begin(5, 3, false);
        return gone > milliseconds(5'000);
    }));
    REQUIRE_FALSE(f.found.actions.empty());
    CHECK(f.found.actions.back().result == "is followed for a newer failure of it now");
}

TEST_CASE("what is to be requeued is written down before it is", "[fault]") {
    followed f;
    f.begin();
    bool written = false;
    f.slurm.when_requeued = [&] {
        std::string warning;
        const auto kept = history::open(f.path(), warning)->find(1).value();
        written = kept->find_action("requeue", "5") != nullptr;
    };
    f.live([](const incident&) { return false; });
    CHECK(f.slurm.calls.front() == "requeue 5");
    CHECK(written);
}

TEST_CASE("nodes of two jobs that say nothing are not taken out for the second", "[fault]") {
    verifications others;
    const auto now = clock::now();
    CHECK_FALSE(others.silence_shared(5, now));
    CHECK_FALSE(others.silence_shared(5, now + std::chrono::seconds(50)));
    CHECK(others.silence_shared(6, now + std::chrono::seconds(100)) == 5u);
    // The second asks anew: its own silence of before is none that it shares.
    CHECK(others.silence_shared(6, now + std::chrono::seconds(200)) == 5u);
    CHECK_FALSE(others.silence_shared(6, now + std::chrono::seconds(351)));
    CHECK(others.silence_shared(7, now + std::chrono::seconds(360)) == 6u);
    CHECK_FALSE(others.silence_shared(7, now + std::chrono::minutes(12)));

    followed f;
    f.limits.step = milliseconds(60);
    f.slurm.jobs[5].may_requeue = false;
    f.slurm.jobs[5].nodes = {"n01", "n03", "n04", "n05"};
    f.slurm.steps[5] = {{1, {"n01", "n02", "n03", "n04", "n05"}}};
    f.slurm.silent = {"n03"};
    const bool shared = GENERATE(false, true);
    if (shared) f.others->silence_shared(6, clock::now());
    f.actions();
    REQUIRE(f.held_up.size() == 1);  // what is found again and again is said once
    CHECK(f.held_up[0].taken_out != shared);
    CHECK((std::ranges::count(f.slurm.asked, "n03") > 1) == shared);
    CHECK(f.held_up[0].known_by == "slurmd does not answer on n03");
    CHECK(f.held_up[0].why_not.starts_with("Nodes of job 6 said nothing") == shared);
}

TEST_CASE("a node that was left because of another job's goes out when it is found anew", "[fault]") {
    followed f;
    f.limits.step = milliseconds(60);
    f.slurm.jobs[5].may_requeue = false;
    f.slurm.jobs[5].nodes = {"n01", "n03", "n04", "n05"};
    f.slurm.steps[5] = {{1, {"n01", "n02", "n03", "n04", "n05"}}};
    f.slurm.silent = {"n03"};
    // The time that counts ends a little after the first look.
    f.others->silence_shared(6, clock::now() - std::chrono::minutes(5) + milliseconds(250));
    const bool answers = GENERATE(false, true);
    f.slurm.when_asked = [&] {
        if (answers && f.slurm.asked.size() > 4) f.slurm.silent.clear();
    };
    f.actions();
    REQUIRE_FALSE(f.held_up.empty());
    CHECK_FALSE(f.held_up.front().taken_out);
    CHECK(f.held_up.back().taken_out != answers);
}

TEST_CASE("a job is followed for its newest failure, and once", "[fault]") {
    verifications others;
    CHECK(others.begin(5, 1, false));
    CHECK_FALSE(others.begin(5, 2, true));  // a node that holds it up in the recovery of the first
    CHECK(others.follows(5, 1));
    CHECK(others.begin(5, 3, false));
    CHECK_FALSE(others.follows(5, 1));
    others.end(5, 1);
    CHECK(others.follows(5, 3));
    others.end(5, 3);
    CHECK(others.begin(5, 4, true));

    followed f;
    f.limits.step = milliseconds(5'000);
    f.slurm.steps[5] = {{1, {"n01", "n02"}}};
    f.begin();
    f.live([&](const incident& i) {
        if (!i.followed.empty()) f.others->begin(5, 3, false);
        return false;
    });
    CHECK(f.slurm.calls.empty());
    REQUIRE(f.found.actions.size() == 1);
    CHECK(f.found.actions[0].result == "is followed for a newer failure of it now");
}

}  // namespace test_verification
