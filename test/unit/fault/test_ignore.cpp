// SPDX-License-Identifier: BSD-3-Clause
//
// What a rule says nobody is to hear of: neither the log nor a figure tells of it, whoever found it, until
// the rules are others.
#include <catch2/catch.hpp>

#include "test/unit/fault/controller_bench.hpp"
#include "test/unit/fault/fabric_bench.hpp"
#include "test/unit/fault/heard.hpp"

namespace test_ignore {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

policy rules_of(const std::string& text) {
    auto read = parse_policy("site.toml", text);
    REQUIRE(read.rules);
    return std::move(*read.rules);
}

const std::string manager_ignored = "[[rule]]\nname = \"known\"\nkind = \"fabric\"\naction = \"ignore\"\n";

}  // namespace

TEST_CASE("nobody hears of a fabric's fault that a rule ignores", "[fault]") {
    ears heard;
    fabric_bench b;
    b.rules = rules_of(manager_ignored);
    b.start();
    for (std::uint64_t flaps = 0; flaps < 2; ++flaps) {
        b.dead();
        b.opensm("Exiting SM");
        REQUIRE(b.until([&] { return b.has(1, true) && b.all()[0].flaps == flaps; }));
        b.master(1, "a1");
        REQUIRE(b.until([&] { return b.has(1, false); }));
    }
    CHECK(b.all()[0].rule == "known");
    CHECK(is_ignored(b.all()[0]));
    CHECK(heard.times("incident ") == 0);
    CHECK(incidents_counted(*b.figures, "subnet-manager") == 0);
}

TEST_CASE("a fault of the fabric that stands is heard of when the rules do not ignore it any more",
          "[fault]") {
    ears heard;
    fabric_bench b;
    const auto file = b.dir / "policy.toml";
    std::ofstream(file) << manager_ignored;
    b.settings.policy = file.string();
    b.rules = rules_of(manager_ignored);
    b.start();
    b.dead();
    b.opensm("Exiting SM");
    REQUIRE(b.until([&] { return b.has(1, true); }));
    const std::string action = GENERATE("log", "alert");
    std::ofstream(file) << "[[rule]]\nname = \"new\"\naction = \"" << action << "\"\n";
    asio::co_spawn(b.io, b.daemon->reload_policy(), asio::detached);
    REQUIRE(b.until([&] { return b.all()[0].rule == "new" && b.has(1, true); }));
    CHECK_FALSE(is_ignored(b.all()[0]));
    CHECK(name_of(static_cast<step_kind>(b.all()[0].decided)) == action);
    // It flaps: the same fault, of which everybody has heard.
    b.master(1, "a1");
    REQUIRE(b.until([&] { return b.has(1, false); }));
    b.dead();
    b.opensm("Exiting SM");
    REQUIRE(b.until([&] { return b.has(1, true); }));
    CHECK(heard.times("incident f00001 error: the subnet manager at LID 1") == 1);
    CHECK(incidents_counted(*b.figures, "subnet-manager") == 1);
}

TEST_CASE("nobody hears of a node that holds up a job where a rule ignores that", "[fault]") {
    ears heard;
    controller_bench b;
    b.rules = rules_of(
        "[[rule]]\nname = \"known\"\nkind = \"stuck\"\naction = \"ignore\"\n"
        "[[rule]]\nname = \"bus\"\nxid = 79\naction = \"down\"\n");
    b.settings.verify.step = std::chrono::milliseconds(200);
    b.settings.verify.pause = std::chrono::milliseconds(20);
    b.job(7, {"n01", "n02", "n03", "n04"}, 2);
    b.slurm.steps[7] = {{1, {"n01", "n02", "n03", "n04"}}};
    b.slurm.holding = {"n02"};
    b.at_least = 2;
    const auto got = b.live({b.xid79()});
    REQUIRE(got.size() == 2);
    CHECK(got[1].reason == stuck_reason);
    CHECK(is_ignored(got[1]));
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    CHECK(heard.times("incident f00001 ") == 1);
    CHECK(heard.times("incident f00002") == 0);
    CHECK(incidents_counted(*b.figures, "gpu-xid-79") == 1);
    CHECK(incidents_counted(*b.figures, "node-stuck") == 0);
}

TEST_CASE("a line's fault is heard of once when the rules do not ignore it any more", "[fault]") {
    ears heard;
    controller_bench b;
    const auto line = [](std::uint64_t position) {
        return event_of(gpu_line(3, "31, pid=1, name=p, MMU Fault"), clock::wall_ms(), position);
    };
    b.rules = rules_of("[[rule]]\nname = \"known\"\nxid = 31\naction = \"ignore\"\n");
    CHECK(is_ignored(b.live({line(1), line(2)}).at(0)));
    CHECK(heard.times("incident f00001") == 0);
    const std::string action = GENERATE("log", "alert");
    b.rules = rules_of("[[rule]]\nname = \"new\"\nxid = 31\naction = \"" + action + "\"\n");
    const auto got = b.live({line(3), line(4), line(5)});
    REQUIRE(got.size() == 1);
    CHECK(got[0].rule == "new");
    CHECK(name_of(static_cast<step_kind>(got[0].decided)) == action);
    CHECK(heard.times("incident f00001 ") == 1);
    CHECK(incidents_counted(*b.figures, got[0].reason) == 1);
}

}  // namespace test_ignore
