// SPDX-License-Identifier: BSD-3-Clause
//
// A site's own rules decide what the controller does, on a fake cluster.
#include <catch2/catch.hpp>

#include "test/unit/fault/controller_bench.hpp"

namespace test_site_rules {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

TEST_CASE("a site's rules decide, within the limits", "[fault]") {
    controller_bench b;
    const auto rules = [&](const std::string& text) {
        auto read = parse_policy("site.toml", text);
        REQUIRE(read.rules);
        b.rules = std::move(*read.rules);
    };
    const auto app = event_of(gpu_line(3, "31, pid=1, name=p, MMU Fault"), clock::wall_ms(), 5);
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
        rules("[[rule]]\nname = \"secondary\"\nclass = \"secondary\"\naction = \"drain\"\n");
        const auto got = b.live({event_of(gpu_line(3, "45, pid=1"), clock::wall_ms(), 5)});
        CHECK(b.slurm.calls == std::vector<std::string>{"drain n03"});
        CHECK(got[0].rule == "secondary");
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
        rules(
            "[[rule]]\nname = \"users\"\nxid = 31\naction = \"notify-user\"\nwhy = \"look for a wild "
            "pointer\"\n");
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
            REQUIRE(got[0].find_action("notify-user", job));
            CHECK(got[0].find_action("notify-user", job)->result ==
                  (b.settings.dry_run ? "dry run: its user would be told" : "its user is told"));
            calls.push_back("tell " + job);
        }
        CHECK(b.slurm.calls == (b.settings.dry_run ? std::vector<std::string>{} : calls));
        if (!b.settings.dry_run)
            CHECK(b.slurm.told.ends_with(" (n03 GPU 3 (0000:03:00)): look for a wild pointer [f00001]"));
        CHECK(b.live({}).size() == 1);
        CHECK(b.slurm.calls.size() == (b.settings.dry_run ? 0 : whom.size()));
    }
    SECTION("a user's text about a node that another's job has") {
        const std::string action = GENERATE("notify-user", "restart-step", "requeue", "alert");
        rules("[[rule]]\nname = \"users\"\nsymptom = [\"nccl-async-event\"]\naction = \"" + action + "\"\n");
        b.job(7, {"n03"}, with_spare);
        auto wrote = app;
        wrote.fault = symptom_at(catalog::symptom::nccl_async_event, "", "mlx5_1", "n03:1:1 [0] NCCL WARN x");
        const auto got = b.live({wrote});
        REQUIRE(got.size() == 1);
        CHECK(got[0].rule == "users");
        CHECK(got[0].jobs.empty());
        CHECK(b.slurm.calls.empty());
    }
    SECTION("nobody to tell") {
        rules("[[rule]]\nname = \"users\"\nxid = 31\naction = \"notify-user\"\n");
        const auto got = b.live({app});
        REQUIRE(got[0].find_action("notify-user", "n03"));
        CHECK(got[0].find_action("notify-user", "n03")->result == "no job has the node: nobody is told");
        CHECK(b.slurm.calls.empty());
    }
    SECTION("the third time") {
        rules(
            "[[rule]]\nname = \"again\"\nxid = 31\ncount = 3\nwithin = \"1h\"\naction = \"drain\"\n"
            "[[rule]]\nname = \"rest\"\naction = \"log\"\n");
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
    controller_bench b;
    b.rules =
        *parse_policy("site.toml", "[[rule]]\nname = \"users\"\nxid = 31\naction = \"notify-user\"\n").rules;
    b.job(7, {"n03"}, with_spare);
    b.settings.dry_run = GENERATE(false, true);
    if (!b.settings.dry_run) b.slurm.tell_fails = 1;
    const auto first = b.live({event_of(gpu_line(3, "31, MMU fault"), clock::wall_ms(), 1)});
    REQUIRE(first.size() == 1);
    REQUIRE(first[0].find_action("notify-user", "7"));
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

}  // namespace test_site_rules
