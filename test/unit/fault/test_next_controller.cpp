// SPDX-License-Identifier: BSD-3-Clause
//
// A controller goes on with what an earlier one had begun.
#include <fstream>

#include <catch2/catch.hpp>

#include "test/unit/fault/controller_bench.hpp"

namespace test_next_controller {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

TEST_CASE("a controller in dry run looks at what one that was not had begun, and changes nothing",
          "[fault]") {
    controller_bench b;
    b.settings.dry_run = true;
    b.settings.verify = {std::chrono::milliseconds(200), std::chrono::milliseconds(50),
                         std::chrono::milliseconds(200), std::chrono::milliseconds(20)};
    b.job(7, {"n01", "n04"}, 2);
    b.slurm.steps[7] = {{1, {"n01", "n03", "n04"}}};
    const bool in_queue = GENERATE(false, true);
    if (in_queue) {
        b.slurm.jobs[7].phase = job_phase::pending;
        b.slurm.jobs[7].start_time = clock::wall_ms() / 1000 + 121;
    }
    {
        history book = *history::open(b.settings.history, b.reason);
        incident i;
        i.number = 1;
        i.object.node = "n03";
        i.state = incident_state::done;
        i.line_ms = i.incident_ms = i.last_ms = i.node_out_ms = clock::wall_ms();
        i.followed = {{7, 0, true, clock::wall_ms(), "n01", {"n01", "n03", "n04"}}};
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

TEST_CASE("a controller that ended between Slurm's work and its own record goes on there", "[fault]") {
    controller_bench b;
    b.job(7, {"n01", "n02", "n03", "n04"}, without);
    const auto e = b.xid79();
    engine earlier;
    auto begun = *earlier.find(earlier.absorb(e, clock::wall_ms()).number);
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
    SECTION("the node is down, and would be back with its slurmd") {
        b.slurm.nodes["n03"] = {"n03", true, false, "banyan: gpu: Xid 79 GPU 3 fell off the bus [f00001]"};
        std::erase(b.slurm.jobs[7].nodes, "n03");
        const auto got = b.live({});
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03", "requeue 7", "start 7"});
        CHECK(b.slurm.nodes["n03"].down);
        CHECK(b.slurm.nodes["n03"].drained);
        CHECK(got[0].node_out_ms != 0);
    }
    SECTION("nothing was done") {
        const auto got = b.live({});
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "requeue 7", "start 7"});
        CHECK(got[0].node_out_ms != 0);
    }
}

TEST_CASE("what is to be acted on is unfinished in the history before that begins", "[fault]") {
    controller_bench b;
    b.settings.policy = (b.dir / "policy.toml").string();
    std::ofstream(b.settings.policy) << "[[rule]]\nname = \"out\"\nkind = \"fabric\"\naction = \"drain\"\n";
    {
        history book = *history::open(b.settings.history, b.reason);
        incident i;
        i.number = 1;
        i.object.kind = object_kind::hca;
        i.object.node = "n03";
        i.boot_id = fabric_boot;
        i.reason = "fabric-host";
        i.state = incident_state::done;
        i.line_ms = i.incident_ms = i.last_ms = clock::wall_ms();
        i.decided = static_cast<std::uint8_t>(step_kind::ignore);
        i.rule = "known";
        REQUIRE(is_ignored(i));
        REQUIRE(book.keep(i));
    }
    life l(b);
    {
        const std::lock_guard slurm_is_slow(b.slurm.lock);
        asio::co_spawn(l.io, l.c.reload_policy(), asio::detached);
        history book = *history::open(b.settings.history, b.reason);
        CHECK(l.time.until(l.io, [&] {
            const auto kept = book.find(1);
            return kept && *kept && (*kept)->rule == "out" && (*kept)->state != incident_state::done;
        }));
    }
    CHECK(l.until([&] { return l.is_done(); }));
    CHECK(b.slurm.calls == std::vector<std::string>{"drain n03"});
}

TEST_CASE("a node that died while no controller was there is found by its agent, which does not come back",
          "[fault]") {
    controller_bench b;
    b.settings.ckptd_port = 1;  // nobody listens there
    for (auto& [name, node] : b.slurm.nodes) node = {name, false, false, "", false, "127.0.0.1", 1};
    b.job(7, {"n01", "n03"}, 1);
    {
        history book = *history::open(b.settings.history, b.reason);
        REQUIRE(book.note_agent("n02"));  // no job has it
        REQUIRE(book.note_agent("n03"));
        REQUIRE(book.set_cursor("n04", {"boot", "s", 1, 1}));
    }
    const auto got = b.live({});
    CHECK(got.at(0).reason == silent_reason);
    CHECK(got[0].object.node == "n03");  // n01 never had an agent
    CHECK(got.size() == 1);
    CHECK(b.slurm.calls == std::vector<std::string>{"lost n03"});
    CHECK(b.slurm.listed == 1);  // for all of them
}

TEST_CASE("what waited over a maintenance is of a boot that is over", "[fault]") {
    controller_bench b;
    const auto line_ms = clock::wall_ms() - 5'000;
    auto e = b.xid79();
    e.line_ms = line_ms;
    b.slurm.refused = 1'000'000;
    (void)b.live({e}, incident_state::held);
    REQUIRE(b.slurm.calls.empty());
    b.slurm.refused = 0;
    SECTION("where Slurm has the node in a later one, and its agent has not come yet") {
        b.slurm.nodes["n03"].boot_time = clock::wall_ms() / 1000;
        const auto got = b.live({});
        CHECK(b.slurm.calls.empty());
        CHECK(results_of(got.at(0), "node_down")
                  .ends_with("held back: the line is from an earlier boot of the node"));
    }
    SECTION("unless an administrator wants it done") {
        b.slurm.nodes["n03"].boot_time = clock::wall_ms() / 1000;
        REQUIRE(b.ruled(ruling::approve));
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    }
    SECTION("but not where the node was not restarted") {
        b.slurm.nodes["n03"].boot_time = line_ms / 1000 - 86'400;
        (void)b.live({});
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    }
    SECTION("nor where that is not known") {
        (void)b.live({});
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    }
}

}  // namespace test_next_controller
