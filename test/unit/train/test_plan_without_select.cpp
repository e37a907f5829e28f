// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <random>

#include <catch2/catch.hpp>

#include "train/plan_summary.hpp"
#include "train/plan_without_select.hpp"

namespace test_plan_without_select {

using namespace banyan;
using namespace banyan::train;
using names = std::vector<std::string>;

namespace {

options asked(const char* shape, std::uint32_t spares = 0, std::optional<std::uint32_t> min_dp = {}) {
    options out;
    out.parallel = topo::parse_shape(shape).value();
    out.spares = spares;
    out.min_dp = min_dp;
    return out;
}

running_job at_start(const names& nodes) {
    return {7, 2, nodes, static_cast<std::uint32_t>(nodes.size()), 0};
}

/// The same job after it has lost a node, and had `before` until then.
running_job without(const running_job& job, const std::string& lost, const plan& before) {
    auto out = job;
    std::erase(out.nodes, lost);
    out.before = before.nodes;
    return out;
}

}  // namespace

TEST_CASE("the plan is of this run of the job, in Slurm's order, and any program takes it", "[train]") {
    const auto p = plan_without_select(asked("tp=2,dp=3", 1), at_start({"n1", "n2", "n10", "n11"})).value();
    const auto told = parse_plan(to_text(p)).value();
    CHECK(told.job == 7);
    CHECK(told.restart == 2);
    CHECK(told.shape == "tp=2,dp=3");
    CHECK(told.ranks_per_node == 2);
    CHECK(told.nodes == names{"n1", "n2", "n10"});
    CHECK(told.spares == names{"n11"});
    CHECK(told.buddies == std::vector<std::uint32_t>{1, 2, 0});
    CHECK(told.former.empty());
    CHECK(told.min_nodes == 0);
    const auto summary = parse_summary(summary_text(p)).value();
    CHECK(summary_of(p).order == summary.order);
    CHECK(summary_of(p).spares == summary.spares);
    CHECK(summary_of(p).buddies == summary.buddies);
    CHECK(summary_of(p).nodes == summary.nodes);
}

TEST_CASE("numbers that do not fit the nodes are no plan", "[train]") {
    CHECK(plan_without_select({}, at_start({"n1"})).error().code == errc::not_found);
    CHECK(plan_without_select(asked("dp=4"), at_start({"n1", "n2", "n3"})).error().code ==
          errc::invalid_input);
    CHECK(plan_without_select(asked("dp=4", 4), at_start({"n1", "n2", "n3", "n4"})).error().code ==
          errc::invalid_input);
    CHECK(plan_without_select(asked("dp=4"), at_start({})).error().code == errc::invalid_input);
    CHECK(plan_without_select(asked("tp=1024,dp=1024"), at_start({"n1"})).error().code ==
          errc::invalid_input);
}

TEST_CASE("the plan follows from three options, whatever else is there", "[train]") {
    const auto read = [](std::vector<std::string> texts) {
        return options_of_plan([texts](which option) { return texts[option]; });
    };
    const auto some = read({"tp=2,dp=3", "1", "nonsense", "nonsense", "nonsense", "2"}).value();
    CHECK(some.parallel->text() == "tp=2,dp=3");
    CHECK(some.spares == 1);
    CHECK(some.min_dp == 2u);
    CHECK_FALSE(some.checkpoint);
    CHECK_FALSE(read({"", "", "", "", "", ""})->parallel);
    CHECK_FALSE(read({"dp=", "", "", "", "", ""}));
    CHECK_FALSE(read({std::string(10'000, '1'), "", "", "", "", ""}));
    CHECK_FALSE(read({"dp=2", "-1", "", "", "", ""}));
}

TEST_CASE("launchers are known by the job's tasks", "[train]") {
    auto job = at_start({"n1", "n2"});
    CHECK_FALSE(plan_without_select(asked("tp=2,dp=2"), job)->launchers);
    job.tasks_per_node = 1;
    const auto p = plan_without_select(asked("tp=2,dp=2"), job).value();
    CHECK(p.launchers);
    CHECK(p.ranks_per_node == 2);
}

TEST_CASE("losses one after the other move nobody but the ranks of the node that is lost", "[train]") {
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        const std::uint32_t spares = round % 4, slots = 1 + random() % 6;
        names nodes;
        for (std::uint32_t i = 0; i < slots + spares; ++i) nodes.push_back("n" + std::to_string(i));
        const auto options = asked(("dp=" + std::to_string(slots)).c_str(), spares);
        auto job = at_start(nodes);
        auto before = plan_without_select(options, job).value();
        for (std::uint32_t lost = 0; lost <= spares; ++lost) {
            const auto node = job.nodes[random() % job.nodes.size()];
            job = without(job, node, before);
            const auto after = plan_without_select(options, job);
            if (lost == spares) {
                CHECK(after.error().code == errc::exhausted);
                break;
            }
            REQUIRE(after);
            for (std::uint32_t slot = 0; slot < slots; ++slot)
                CHECK((after->nodes[slot] == before.nodes[slot]) == (before.nodes[slot] != node));
            CHECK(after->spares.size() + slots == job.nodes.size());
            before = *after;
        }
    }
}

TEST_CASE("with --train-min-dp the first slots go on, and the shape stays", "[train]") {
    const auto options = asked("tp=2,dp=4", 0, 2);
    auto job = at_start({"n1", "n2", "n3", "n4"});
    const auto before = plan_without_select(options, job).value();
    CHECK(before.min_nodes == 2);
    const auto after = plan_without_select(options, without(job, "n2", before)).value();
    CHECK(after.shape == "tp=2,dp=4");
    CHECK(after.nodes == names{"n1", "n4", "n3"});
    CHECK(after.buddies.size() == 4);
    CHECK(parse_plan(to_text(after)));
    CHECK(summary_of(after).nodes == 4);
    job = without(without(job, "n2", before), "n1", after);
    CHECK(plan_without_select(options, job)->nodes == names{"n3", "n4"});
    job = without(job, "n3", *plan_without_select(options, job));
    CHECK(plan_without_select(options, job).error().code == errc::exhausted);
}

TEST_CASE("the script's word of the nodes at the start counts when it is of as many", "[train]") {
    auto job = at_start({"n1", "n2", "n3"});
    std::erase(job.nodes, "n1");
    const auto options = asked("dp=2", 1);
    job.before = order_at_start(options, job, "n[1-3]");
    CHECK(job.before == names{"n1", "n2"});
    CHECK(plan_without_select(options, job)->nodes == names{"n3", "n2"});
    CHECK(order_at_start(options, job, "n[1-2]").empty());
    CHECK(order_at_start(options, job, "n[").empty());
    CHECK(order_at_start(options, job, "").empty());
}

TEST_CASE("what a user says of the slots before moves ranks, and no node into the job", "[train]") {
    auto job = at_start({"n1", "n2", "n3"});
    for (const auto& forged : {names{"x", "y"}, names{"n1", "n1"}, names{"n3"}, names{"n3", "n2", "n1", "n0"},
                               names{"", ""}, names{"n3", "n1"}}) {
        job.before = forged;
        auto p = plan_without_select(asked("dp=2", 1), job).value();
        names all = p.nodes;
        all.insert(all.end(), p.spares.begin(), p.spares.end());
        std::sort(all.begin(), all.end());
        CHECK(all == job.nodes);
    }
}

}  // namespace test_plan_without_select
