// SPDX-License-Identifier: BSD-3-Clause
//
// The controller's judgement and order of actions, on a fake cluster: what is done, what is left alone, and
// that nothing is done twice, also across a restart.
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>
#include <unistd.h>

#include "fault/controller/controller.hpp"
#include "fault/policy/policy_file.hpp"
#include "test/unit/fault/fake_cluster.hpp"
#include "test/unit/fault/lines.hpp"

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

class bench {
  public:
    std::filesystem::path dir =
        std::filesystem::temp_directory_path() / ("banyan-controller-" + std::to_string(::getpid()));
    fake_state slurm;
    config settings = load_config({}, "n00").value();
    policy rules = shipped_policy();
    std::string reason;  // why the history was begun anew

    bench() {
        std::filesystem::create_directories(dir);
        settings.bind = "127.0.0.1";
        settings.port = 0;
        settings.history = (dir / "history.db").string();
        settings.dry_run = false;
        for (const char* name : {"n01", "n02", "n03", "n04"}) slurm.nodes[name] = {name, false, false, ""};
    }
    ~bench() { std::filesystem::remove_all(dir); }

    void job(std::uint32_t id, std::vector<std::string> nodes, result<std::optional<std::uint32_t>> needed) {
        job_status j;
        j.id = id;
        j.phase = job_phase::running;
        j.nodes = std::move(nodes);
        j.may_requeue = true;
        slurm.jobs[id] = j;
        slurm.needed[id] = std::move(needed);
    }
    /// One life of a controller: starts, takes the events, ends when the incidents are done.
    std::vector<incident> live(std::vector<event> events, incident_state also = incident_state::done) {
        asio::io_context io;
        asio::thread_pool pool(2);
        controller c(io, pool, settings, rules, std::make_shared<metrics>(),
                     std::make_unique<fake_cluster>(slurm));
        const auto started = c.start();
        INFO((started ? "" : started.error().text()));
        REQUIRE(started);
        if (!events.empty()) asio::co_spawn(io, c.take_events("n03", std::move(events)), asio::detached);
        const auto begun = std::chrono::steady_clock::now(), end = begun + std::chrono::seconds(10);
        const auto known = [&] {
            std::vector<incident> out;
            for (const auto& [number, i] : c.incidents().all()) out.push_back(i);
            return out;
        };
        const auto busy = [&] {
            return c.incidents().all().size() < at_least ||
                   std::chrono::steady_clock::now() < begun + least || !enough(known()) ||
                   std::ranges::any_of(c.incidents().all(), [&](const auto& p) {
                       return p.second.state != incident_state::done && p.second.state != also;
                   });
        };
        do io.run_for(std::chrono::milliseconds(50));
        while (busy() && std::chrono::steady_clock::now() < end);
        CHECK_FALSE(busy());
        io.run_for(std::chrono::milliseconds(50));
        pool.join();
        c.finish();
        return known();
    }
    /// A controller's life in which an administrator rules on incident `number`.
    result<std::string> ruled(ruling what, std::uint64_t number = 1) {
        asio::io_context io;
        asio::thread_pool pool(2);
        controller c(io, pool, settings, rules, std::make_shared<metrics>(),
                     std::make_unique<fake_cluster>(slurm));
        REQUIRE(c.start());
        result<std::string> answer = fail(errc::internal, "no answer");
        const auto ask = [&]() -> task<void> { answer = co_await c.rule_on(number, what, "uid 7"); };
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        const auto in_time = [&] { return std::chrono::steady_clock::now() < until; };
        const auto run = [&] { io.run_for(std::chrono::milliseconds(20)); };
        do {
            run();  // at its start it looks at what is held by itself
            asio::co_spawn(io, ask(), asio::detached);
            run();
        } while (!answer && answer.error().text().find("try again") != std::string::npos && in_time());
        const auto busy = [&] {
            const auto& all = c.incidents().all();
            const auto i = all.find(number);
            return i != all.end() &&
                   (i->second.state == incident_state::acting || !i->second.approved_by.empty());
        };
        while (wait_for_it && busy() && in_time()) run();
        CHECK((!wait_for_it || !busy()));
        pool.join();
        c.finish();
        kept.clear();
        for (const auto& [id, i] : c.incidents().all()) kept.push_back(i);
        return answer;
    }
    std::vector<incident> kept;  // after ruled()
    bool wait_for_it = true;
    std::size_t at_least = 1;  // incidents, until a life ends
    std::function<bool(const std::vector<incident>&)> enough = [](const auto&) { return true; };  // also
    std::chrono::milliseconds least{0};                                                           // of a life

    event xid79(std::uint64_t position = 1) {
        return event_of(gpu_line(3, "79, GPU has fallen off the bus."), wall_ms(), position);
    }
};

constexpr std::uint32_t with_spare = 3, without = 4;  // nodes that the job needs, of its four

}  // namespace

TEST_CASE("79 takes the node out once and leaves a job with spares to banyan-run", "[fault]") {
    bench b;
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

TEST_CASE("too few nodes left: requeued, and started now", "[fault]") {
    bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, without);
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "requeue 7", "start 7"});
    REQUIRE(got.size() == 1);
    CHECK(got[0].find_action("start_now", "7"));
}

TEST_CASE("a node that does not end the last run of a job goes out, too", "[fault]") {
    bench b;
    b.settings.verify.step = std::chrono::milliseconds(200);
    b.settings.verify.pause = std::chrono::milliseconds(20);
    b.job(7, {"n01", "n02", "n03", "n04"}, 2);
    b.slurm.steps[7] = {{1, {"n01", "n02", "n03", "n04"}}};
    b.slurm.holding = {"n02"};
    b.at_least = 2;
    SECTION("by the shipped rules") {
        const auto got = b.live({b.xid79()});
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "down n02"});
        CHECK(b.slurm.nodes["n02"].reason ==
              "banyan: node: n02 has not ended the last run of job 7 [f00002]");
        REQUIRE(got.size() == 2);
        CHECK(got[1].rule == "node-stuck");
        CHECK(got[1].jobs == std::vector<std::uint64_t>{7});
        CHECK(got[1].actions.back().result.starts_with("goes on: 2 nodes left, 2 needed"));
        // The next controller finds it done.
        b.slurm.steps[7] = {{2, {"n01", "n04"}}};
        b.live({});
        CHECK(b.slurm.calls.size() == 2);
    }
    SECTION("where no rule is for it") {
        b.rules = *parse_policy("site.toml", "[[rule]]\nname = \"bus\"\nxid = 79\naction = \"down\"\n").rules;
        const auto got = b.live({b.xid79()});
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
        CHECK(got[1].rule.empty());
        CHECK(got[1].actions.empty());
    }
    SECTION("not where something holds it back: it is told, closed, and never done later") {
        const auto* const why = GENERATE("limits", "refused", "somebody's");
        CAPTURE(why);
        if (why == std::string("limits")) b.settings.drains_per_hour = 1;
        if (why == std::string("limits")) b.settings.drains_percent = 0;
        if (why == std::string("somebody's")) b.slurm.nodes["n02"].reason = "fans are loud";
        if (why == std::string("refused")) b.slurm.refuse_node = "n02";
        b.enough = [](const auto& all) { return all.back().closed_ms != 0; };
        const auto got = b.live({b.xid79()});
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
        REQUIRE(got.size() == 2);
        CHECK(got[1].state == incident_state::done);
        CHECK(got[1].closed_by.starts_with("the controller: "));
        REQUIRE(got[1].find_action("node_down", "n02"));
        CHECK(got[1].find_action("node_down", "n02")->result.starts_with("not done, nor later: "));
        b.slurm.refuse_node.clear();
        b.slurm.nodes["n02"].reason.clear();
        b.slurm.steps[7] = {{2, {"n01", "n02", "n04"}}};
        CHECK_FALSE(b.ruled(ruling::approve, 2));
        CHECK_FALSE(b.ruled(ruling::retry, 2));
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    }
    SECTION("where no rule is for it, the incident ends when the job has a new step") {
        b.rules = *parse_policy("site.toml", "[[rule]]\nname = \"bus\"\nxid = 79\naction = \"down\"\n").rules;
        b.enough = [&](const auto& all) {
            const std::lock_guard hold(b.slurm.lock);
            if (all.size() == 2) b.slurm.steps[7] = {{2, {"n01", "n02", "n04"}}};
            return all.size() == 2 && all.back().closed_ms != 0;
        };
        const auto got = b.live({b.xid79()});
        REQUIRE(got.size() == 2);
        CHECK(got[1].closed_by == "the node: job 7 has a new step");
    }
}

TEST_CASE("a node that was said to hold up a job goes out on a fresh fact only", "[fault]") {
    bench b;
    const auto* const state = GENERATE("open", "held", "approved", "done");
    CAPTURE(state);
    b.job(7, {"n01", "n02"}, 2);
    {
        history book = *history::open(b.settings.history, b.reason);
        incident i;
        i.number = 1;
        i.object.kind = object_kind::node;
        i.object.node = "n02";
        i.reason = stuck_reason;
        i.jobs = {7};
        i.state = state == std::string("open")   ? incident_state::open
                  : state == std::string("done") ? incident_state::done
                                                 : incident_state::held;
        if (state == std::string("approved")) i.approved_by = "uid 7";
        if (state == std::string("done")) i.actions = {{"node_down", "n02", 1, "held back: the breaker"}};
        i.root_precedence = static_cast<std::uint8_t>(precedence::node_out);
        i.line_ms = i.incident_ms = i.last_ms = wall_ms() - 1;
        REQUIRE(book.keep(i));
    }
    const auto got = b.live({});
    if (state == std::string("done"))
        CHECK_FALSE(b.ruled(ruling::approve, 1));
    else
        CHECK(got.at(0).closed_by.starts_with("the controller: an earlier controller found it"));
    CHECK(b.slurm.calls.empty());
}

TEST_CASE("a node that does not end a job's last run stays in dry run", "[fault]") {
    bench b;
    b.settings.dry_run = true;
    b.settings.verify.step = std::chrono::milliseconds(200);
    b.settings.verify.pause = std::chrono::milliseconds(20);
    b.job(7, {"n01", "n02", "n04"}, 2);
    b.slurm.steps[7] = {{1, {"n01", "n02", "n03", "n04"}}};
    b.slurm.holding = {"n02"};
    {
        history book = *history::open(b.settings.history, b.reason);
        incident i;
        i.number = 1;
        i.object.node = "n03";
        i.state = incident_state::done;
        i.line_ms = i.incident_ms = i.last_ms = i.node_out_ms = wall_ms();
        i.followed = {{7, 0, true, wall_ms(), "n01", {"n01", "n02", "n03", "n04"}}};
        REQUIRE(book.keep(i));
    }
    b.at_least = 2;
    b.enough = [](const auto& all) { return all.back().find_action("node_down", "n02") != nullptr; };
    const auto got = b.live({});
    CHECK(b.slurm.calls.empty());
    REQUIRE(got.size() == 2);
    REQUIRE(got[1].find_action("node_down", "n02"));
    CHECK(got[1].find_action("node_down", "n02")->result.starts_with("dry run: would set n02 DOWN"));
}

TEST_CASE("a controller in dry run looks at what one that was not had begun, and changes nothing",
          "[fault]") {
    bench b;
    b.settings.dry_run = true;
    b.settings.verify = {std::chrono::milliseconds(200), std::chrono::milliseconds(50),
                         std::chrono::milliseconds(200), std::chrono::milliseconds(20)};
    b.job(7, {"n01", "n04"}, 2);
    b.slurm.steps[7] = {{1, {"n01", "n03", "n04"}}};
    const bool in_queue = GENERATE(false, true);
    if (in_queue) {
        b.slurm.jobs[7].phase = job_phase::pending;
        b.slurm.jobs[7].start_time = std::time(nullptr) + 121;
    }
    {
        history book = *history::open(b.settings.history, b.reason);
        incident i;
        i.number = 1;
        i.object.node = "n03";
        i.state = incident_state::done;
        i.line_ms = i.incident_ms = i.last_ms = i.node_out_ms = wall_ms();
        i.followed = {{7, 0, true, wall_ms(), "n01", {"n01", "n03", "n04"}}};
        REQUIRE(book.keep(i));
    }
    const auto over = [&](const std::vector<incident>& all) {
        const auto* said = all.at(0).find_action(in_queue ? "job" : "verify", "7");
        return said != nullptr;
    };
    b.enough = over;
    b.least = std::chrono::milliseconds(in_queue ? 2'500 : 0);  // when a node would take it again
    const auto got = b.live({});
    CHECK(over(got));
    CHECK(b.slurm.calls.empty());
    if (!in_queue)
        CHECK(got[0].find_action("verify", "7")->result ==
              "has no new step in 0 s; dry run: it would be requeued");
}

TEST_CASE("how many nodes a job needs is asked until slurmctld tells", "[fault]") {
    bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, without);
    b.slurm.unanswered = 2;
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "requeue 7", "start 7"});
}

TEST_CASE("a job whose plan cannot be believed is left alone, which is said", "[fault]") {
    bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, fail(errc::denied, "job 7 has two plans"));
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    REQUIRE(got.size() == 1);
    REQUIRE(got[0].find_action("job", "7"));
    CHECK(got[0].find_action("job", "7")->result == "job 7 has two plans: left alone");
}

TEST_CASE("a job without a plan that has lost a node goes on", "[fault]") {
    bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, std::nullopt);
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    REQUIRE(got[0].find_action("job", "7"));
    CHECK(got[0].find_action("job", "7")->result.starts_with("goes on: 3 nodes left; "));
}

TEST_CASE("dry run, foreign reasons and application errors change nothing", "[fault]") {
    bench b;
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
        const auto got = b.live({event_of(gpu_line(3, "31, pid=1, name=p, MMU Fault"), wall_ms(), 5)});
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

TEST_CASE("a site's rules decide, within the limits", "[fault]") {
    bench b;
    const auto rules = [&](const std::string& text) {
        auto read = parse_policy("site.toml", text);
        REQUIRE(read.rules);
        b.rules = std::move(*read.rules);
    };
    const auto app = event_of(gpu_line(3, "31, pid=1, name=p, MMU Fault"), wall_ms(), 5);
    SECTION("less than shipped") {
        rules("[[rule]]\nname = \"calm\"\naction = \"alert\"\n");
        const auto got = b.live({b.xid79()});
        CHECK(b.slurm.calls.empty());
        CHECK(got[0].rule == "calm");
        CHECK(got[0].advice == "a person should look");
    }
    SECTION("more than shipped") {
        rules("[[rule]]\nname = \"strict\"\nxid = 31\naction = \"drain\"\n");
        const auto got = b.live({app});
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03"});
        CHECK(got[0].find_action("node_drain", "n03")->result.ends_with(", rule strict"));
    }
    SECTION("more than shipped, but an old line") {
        rules("[[rule]]\nname = \"strict\"\nxid = 31\naction = \"drain\"\n");
        auto old = app;
        old.line_ms -= 3'600'000;
        const auto got = b.live({old});
        CHECK(b.slurm.calls.empty());
        CHECK(got[0].find_action("node_drain", "n03")->result.starts_with("held back: the line is"));
    }
    SECTION("what follows from another fault, alone") {
        rules("[[rule]]\nname = \"echo\"\nasks = \"echo\"\naction = \"drain\"\n");
        const auto got = b.live({event_of(gpu_line(3, "45, pid=1"), wall_ms(), 5)});
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03"});
        CHECK(got[0].rule == "echo");
    }
    SECTION("what nobody is to hear of") {
        rules(
            "[[rule]]\nname = \"known\"\nxid = 31\naction = \"ignore\"\n"
            "[[rule]]\nname = \"bus\"\nxid = 79\naction = \"down\"\n");
        b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
        auto got = b.live({app});
        CHECK(b.slurm.calls.empty());
        REQUIRE(got.size() == 1);
        CHECK(got[0].rule == "known");
        CHECK(is_ignored(got[0]));
        CHECK(got[0].actions.empty());
        // The same thing becomes worse, under the next controller.
        got = b.live({b.xid79(6)});
        REQUIRE(got.size() == 1);
        CHECK(got[0].rule == "bus");
        CHECK_FALSE(is_ignored(got[0]));
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    }
    SECTION("the user is told, once") {
        rules("[[rule]]\nname = \"users\"\nxid = 31\naction = \"tell\"\nwhy = \"look for a wild pointer\"\n");
        b.settings.dry_run = GENERATE(false, true);
        b.job(7, {"n02", "n03"}, with_spare);
        b.job(8, {"n03"}, with_spare);
        auto named = app;
        named.job = GENERATE(0U, 8U);
        const std::vector<std::string> whom =
            named.job == 8 ? std::vector<std::string>{"8"} : std::vector<std::string>{"7", "8"};
        auto again = named;
        again.position = 9;
        const auto got = b.live({named, again});
        REQUIRE(got.size() == 1);
        CHECK(got[0].rule == "users");
        REQUIRE(got[0].actions.size() == whom.size());
        std::vector<std::string> calls;
        for (const auto& job : whom) {
            REQUIRE(got[0].find_action("tell", job));
            CHECK(got[0].find_action("tell", job)->result ==
                  (b.settings.dry_run ? "dry run: its user would be told" : "its user is told"));
            calls.push_back("tell " + job);
        }
        CHECK(b.slurm.calls == (b.settings.dry_run ? std::vector<std::string>{} : calls));
        if (!b.settings.dry_run)
            CHECK(b.slurm.told.ends_with(" (n03 GPU 3 (0000:03:00)): look for a wild pointer [f00001]"));
        CHECK(b.live({}).size() == 1);
        CHECK(b.slurm.calls.size() == (b.settings.dry_run ? 0 : whom.size()));
    }
    SECTION("nobody to tell") {
        rules("[[rule]]\nname = \"users\"\nxid = 31\naction = \"tell\"\n");
        const auto got = b.live({app});
        REQUIRE(got[0].find_action("tell", "n03"));
        CHECK(got[0].find_action("tell", "n03")->result == "no job has the node: nobody is told");
        CHECK(b.slurm.calls.empty());
    }
    SECTION("the third time") {
        rules(
            "[[rule]]\nname = \"again\"\nxid = 31\ncount = 3\nwithin = \"1h\"\naction = \"drain\"\n"
            "[[rule]]\nname = \"rest\"\naction = \"note\"\n");
        b.settings.max_event_age = std::chrono::hours(1);
        const auto at = [&](int minutes) {
            auto e = app;
            e.position = static_cast<std::uint64_t>(100 + minutes);
            e.line_ms += (minutes - 30) * 60'000;
            return e;
        };
        CHECK(b.live({at(0), at(10)}).back().rule == "rest");
        CHECK(b.slurm.calls.empty());
        // Counted over a restart.
        CHECK(b.live({at(20)}).back().rule == "again");
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03"});
    }
}

TEST_CASE("an attempt to tell a user that failed, or was none in dry run, has told nobody", "[fault]") {
    bench b;
    b.rules = *parse_policy("site.toml", "[[rule]]\nname = \"users\"\nxid = 31\naction = \"tell\"\n").rules;
    b.job(7, {"n03"}, with_spare);
    b.settings.dry_run = GENERATE(false, true);
    if (!b.settings.dry_run) b.slurm.tell_fails = 1;
    const auto first = b.live({event_of(gpu_line(3, "31, MMU fault"), wall_ms(), 1)});
    REQUIRE(first.size() == 1);
    REQUIRE(first[0].find_action("tell", "7"));
    CHECK(b.slurm.calls.empty());
    b.settings.dry_run = false;
    for (int life = 0; life < 2; ++life) {  // the second finds it done
        {
            history book = *history::open(b.settings.history, b.reason);
            auto i = book.find(1).value().value();
            i.state = incident_state::acting;
            REQUIRE(book.keep(i));
        }
        CHECK(b.live({}).at(0).actions.back().result == "its user is told");
        CHECK(b.slurm.calls == std::vector<std::string>{"tell 7"});
    }
}

TEST_CASE("what was decided is not decided again by a harmless line after a restart", "[fault]") {
    bench b;
    (void)b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    b.slurm.nodes["n03"] = {"n03", false, false, ""};  // by scontrol, unknown to us
    const auto got = b.live({event_of(gpu_line(3, "45, pid=1"), wall_ms() + 60'000, 9)});
    CHECK(got.size() == 1);
    CHECK(b.slurm.calls.size() == 1);
}

TEST_CASE("an application's error names the jobs that had the node, and touches neither", "[fault]") {
    bench b;
    b.job(7, {"n01", "n03"}, with_spare);
    b.job(8, {"n02"}, with_spare);
    for (const std::string& line :
         {gpu_line(3, "31, pid=1, name=a, Ch 00000008, MMU Fault"),
          gpu_line(3, "13, pid=1, name=a, Graphics Exception"),
          std::string("Memory cgroup out of memory: Killed process 4 (a) total-vm:1kB")}) {
        CAPTURE(line);
        const auto got = b.live({event_of(line, wall_ms(), std::hash<std::string>()(line) % 1000)});
        REQUIRE(!got.empty());
        CHECK(got.back().jobs == std::vector<std::uint64_t>{7});
        CHECK(got.back().actions.empty());
    }
    CHECK(b.slurm.calls.empty());
}

TEST_CASE("a fault that needs a reset takes jobs that can go on elsewhere off the node", "[fault]") {
    bench b;
    const auto reset = event_of(gpu_line(3, "119, Timeout"), wall_ms(), 5);
    SECTION("a spare is there") {
        b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
        const auto got = b.live({reset});
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
        CHECK(got[0].find_action("job", "7")->result.find("3 nodes left, 3 needed") != std::string::npos);
    }
    SECTION("no spare: from the queue") {
        b.job(7, {"n01", "n02", "n03", "n04"}, without);
        (void)b.live({reset});
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "requeue 7", "start 7"});
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
    SECTION("nobody is on it") {
        (void)b.live({reset});
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03"});
    }
    SECTION("slurmctld does not tell at first") {
        b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
        b.slurm.unanswered = 1;
        (void)b.live({reset});
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    }
}

TEST_CASE("a fault that shows again after somebody returned the node counts again", "[fault]") {
    bench b;
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
}

TEST_CASE("what slurmctld did not answer for is done when it does", "[fault]") {
    bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, with_spare);
    b.slurm.refused = 2;
    const auto got = b.live({b.xid79()});
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    CHECK(got[0].state == incident_state::done);
    CHECK(got[0].find_action("node_down", "n03")->result == "held back: slurmctld is away");
    CHECK(got[0].node_out_ms != 0);
    CHECK(got[0].held_ms == 0);
}

TEST_CASE("what the limit of an hour held back is done when there is room", "[fault]") {
    bench b;
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

TEST_CASE("a controller that ended between Slurm's work and its own record goes on there", "[fault]") {
    bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, without);
    const auto e = b.xid79();
    engine earlier;
    auto begun = *earlier.find(earlier.absorb(e, wall_ms()).number);
    begun.state = incident_state::acting;
    begun.jobs = {7};
    {
        std::string warning;
        auto kept = history::open(b.settings.history, warning);
        REQUIRE(kept);
        REQUIRE(kept->keep({{e, begun.number}}, {begun}));
    }
    SECTION("the node is out already") {
        b.slurm.nodes["n03"] = {"n03", true, true, "banyan: gpu: Xid 79 GPU 3 fell off the bus [f00001]"};
        std::erase(b.slurm.jobs[7].nodes, "n03");
        const auto got = b.live({});
        CHECK(b.slurm.calls == std::vector<std::string>{"requeue 7", "start 7"});
        CHECK(got[0].node_out_ms != 0);
    }
    SECTION("nothing was done") {
        const auto got = b.live({});
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "requeue 7", "start 7"});
        CHECK(got[0].node_out_ms != 0);
    }
}

TEST_CASE("an administrator rules on what the limits hold back", "[fault]") {
    bench b;
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
            (void)b.live({event_of(gpu_line(3, "79, GPU has fallen off the bus."), wall_ms(), 1, node)},
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
    bench b;
    auto old = b.xid79(1);
    old.line_ms -= 3'600'000;
    (void)b.live({old, event_of(gpu_line(3, "31, pid=1, name=p"), wall_ms(), 2, "n04")});
    const auto error_of = [&](ruling what, std::uint64_t number) {
        const auto done = b.ruled(what, number);
        return done ? std::string() : done.error().text();
    };
    for (const auto what : {ruling::approve, ruling::retry, ruling::cancel}) {
        CHECK(error_of(what, 2) == "nothing of incident f00002 is held back: what is asked for is \"note\"");
        CHECK(error_of(what, 99).find("there is no open incident f00099") == 0);
    }
    CHECK(error_of(ruling::retry, 1).find("for good") != std::string::npos);
    CHECK(b.slurm.calls.empty());
    CHECK(error_of(ruling::approve, 1).empty());
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
}

TEST_CASE("a breaker that opened stays open for the next controller", "[fault]") {
    bench b;
    const auto lost = [](const char* node) {
        return event_of(gpu_line(3, "79, GPU has fallen off the bus."), wall_ms(), 1, node);
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

TEST_CASE("nodes that fail at the same moment are as many as the limits allow", "[fault]") {
    bench b;
    std::vector<event> all;
    for (int n = 1; n <= 8; ++n) {
        const auto node = "n0" + std::to_string(n);
        b.slurm.nodes[node] = {node, false, false, ""};
        all.push_back(event_of(gpu_line(3, "79, GPU has fallen off the bus."), wall_ms(), 1, node));
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
