// SPDX-License-Identifier: BSD-3-Clause
#include <random>

#include <catch2/catch.hpp>

#include "test/unit/train/example_plan.hpp"
#include "train/plan_summary.hpp"
#include "train/supervised.hpp"

namespace test_plan_summary {

using namespace banyan;
using namespace banyan::train;
using banyan::train::test::example_plan;

namespace {

std::string entry(const plan& p) { return std::string(summary_variable) + "=" + summary_text(p); }

result<std::optional<plan_summary>> read(const std::vector<std::string>& entries, std::uint32_t job = 77,
                                         std::uint32_t restart = 1) {
    std::vector<const char*> pointers{nullptr};
    for (const auto& e : entries) pointers.push_back(e.c_str());
    return summary_in(pointers.data(), static_cast<std::uint32_t>(pointers.size()), job, restart);
}

}  // namespace

TEST_CASE("a plan says whether banyan-run starts its steps", "[train]") {
    auto p = example_plan();
    CHECK_FALSE(parse_summary(summary_text(p))->supervised);
    CHECK_FALSE(parse_plan(to_text(p))->supervised);
    p.supervised = true;
    CHECK(parse_summary(summary_text(p))->supervised);
    CHECK(parse_plan(to_text(p))->supervised);
}

TEST_CASE("a step of banyan-run is known by its command line", "[train]") {
    CHECK(starts_again("srun --no-kill=off --kill-on-bad-exit=1 --train -N 2 -n 4 ./train"));
    CHECK(starts_again(
        "srun --immediate=2 --het-group=1 --no-kill=off --kill-on-bad-exit=1 --train -N 2 -n 4 -l ./train"));
    CHECK_FALSE(starts_again("srun ./train"));
    CHECK_FALSE(starts_again("srun --no-kill=off ./train"));
    CHECK_FALSE(starts_again(""));
}

TEST_CASE("a summary says what a step needs to know of the plan", "[train]") {
    auto p = example_plan();
    const auto s = parse_summary(summary_text(p)).value();
    CHECK(s.job == 77);
    CHECK(s.generation == 3);
    CHECK(s.restart == 1);
    CHECK(s.shape == p.shape);
    CHECK(s.nodes == 4);
    CHECK(s.ranks() == 8);
    CHECK(s.tasks() == 8);
    CHECK(s.order == p.nodes);
    CHECK(s.spares == p.spares);  // in their order: the last is left out first
    CHECK(s.buddies == p.buddies);
    p.launchers = true;
    CHECK(parse_summary(summary_text(p))->tasks() == 4);
}

TEST_CASE("buddies that do not fit are unknown, and leave room for the spares", "[train]") {
    auto p = example_plan();
    p.shape = "dp=262144";
    p.ranks_per_node = 16;
    p.nodes.clear();
    for (int i = 0; i < 16384; ++i) p.nodes.push_back("n" + std::to_string(10'000 + i));
    p.buddies.resize(16384);
    // No two slots in turn have the same distance.
    for (std::uint32_t slot = 0; slot < 16384; ++slot) p.buddies[slot] = 16383 - slot;
    const auto text = summary_text(p);
    CHECK(text.size() <= max_summary_text);
    const auto s = parse_summary(text).value();
    CHECK(s.buddies.empty());
    CHECK(s.spares == p.spares);
    for (std::uint32_t slot = 0; slot < 16384; ++slot) p.buddies[slot] = (slot + 16) % 16384;
    CHECK(parse_summary(summary_text(p))->buddies == p.buddies);
}

TEST_CASE("spares that do not fit are unknown, and the rest is told", "[train]") {
    auto p = example_plan();
    p.spares.clear();
    for (int i = 0; i < 12000; ++i) p.spares.push_back("node-" + std::to_string(i * 7919) + "-x");
    const auto text = summary_text(p);
    CHECK(text.size() <= max_summary_text);
    CHECK(parse_summary(text)->spares.empty());
    CHECK(parse_summary(text)->nodes == 4);
}

TEST_CASE("there is none, and it cannot be believed, are two answers", "[train]") {
    const auto good = entry(example_plan());
    CHECK(read({"A=b", good, "B=c"}).value()->nodes == 4);
    CHECK_FALSE(read({"A=b", "BANYAN_PLAN_SUMMARY_2=x"}).value());
    CHECK_FALSE(read({}).value());
    CHECK(read({good, good}).error().code == errc::denied);
    CHECK(read({good}, 78).error().code == errc::denied);
    CHECK(read({good}, 77, 2).error().code == errc::denied);
    CHECK(read({"BANYAN_PLAN_SUMMARY=", "A=b"}).error().code == errc::invalid_input);
    CHECK(read({"BANYAN_PLAN_SUMMARY=banyan: dp=4 nodes=4 ranks=4 spares=0"}).error().code ==
          errc::invalid_input);
}

TEST_CASE("a summary that contradicts itself, or is of another version, is refused", "[train]") {
    const auto text = summary_text(example_plan());
    for (const auto& [from, to] :
         std::vector<std::pair<std::string, std::string>>{{"\"nodes\":4", "\"nodes\":3"},
                                                          {"\"nodes\":4", "\"nodes\":-4"},
                                                          {"\"ranks_per_node\":2", "\"ranks_per_node\":0"},
                                                          {"tp=2", "tp=3"},
                                                          {"\"shape\"", "\"shapes\""},
                                                          {"\"version\":3", "\"version\":2"},
                                                          {"\"job\":77", "\"job\":\"77\""},
                                                          {"\"spares\":\"", "\"launchers\":1,\"spares\":\""},
                                                          {"\"buddies\":[2,4]", "\"buddies\":[2,3]"},
                                                          {"\"buddies\":[2,4]", "\"buddies\":[9,4]"},
                                                          {"\"buddies\":[2,4]", "\"buddies\":\"2\""},
                                                          {"\"spares\":\"n[", "\"spares\":\"n[["}}) {
        auto changed = text;
        REQUIRE(changed.find(from) != std::string::npos);
        changed.replace(changed.find(from), from.size(), to);
        INFO(changed);
        CHECK_FALSE(parse_summary(changed));
    }
    CHECK_FALSE(parse_summary(std::string(max_summary_text + 1, ' ')));
}

TEST_CASE("summaries that were changed at random never crash the parser", "[train]") {
    const auto text = summary_text(example_plan());
    std::mt19937 random(3);
    int refused = 0;
    for (int i = 0; i < 20000; ++i) {
        auto changed = text;
        for (int k = 0; k < 3; ++k) changed[random() % changed.size()] = static_cast<char>(random());
        refused += !parse_summary(changed.substr(0, random() % (changed.size() + 1)));
    }
    CHECK(refused > 10000);
}

}  // namespace test_plan_summary
