// SPDX-License-Identifier: BSD-3-Clause
//
// What the controller does with a node that does not end the last run of a job, on a fake cluster.
#include <catch2/catch.hpp>

#include "test/unit/fault/controller_bench.hpp"

namespace test_stuck_nodes {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

TEST_CASE("a node that does not end the last run of a job goes out, too", "[fault]") {
    controller_bench b;
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
    SECTION("where another job has the node that one goes on: no new one starts there") {
        b.job(8, {"n02"}, std::optional<std::uint32_t>());
        const auto got = b.live({b.xid79()});
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03", "drain n02"});
        REQUIRE(got.size() == 2);
        CHECK(got[1].jobs == std::vector<std::uint64_t>{7});
        CHECK(got[1].find_action("node_drain", "n02"));
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
    controller_bench b;
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
        i.line_ms = i.incident_ms = i.last_ms = clock::wall_ms() - 1;
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
    controller_bench b;
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
        i.line_ms = i.incident_ms = i.last_ms = i.node_out_ms = clock::wall_ms();
        i.followed = {{7, 0, true, clock::wall_ms(), "n01", {"n01", "n02", "n03", "n04"}}};
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

}  // namespace test_stuck_nodes
