// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "train/plan_in_order.hpp"

namespace test_plan_in_order {

using namespace banyan;
using namespace banyan::train;
using names = std::vector<std::string>;

namespace {

topo::request asked(const char* shape, std::uint32_t nodes, std::uint32_t per_node, std::uint32_t spares) {
    return topo::make_request(topo::parse_shape(shape).value(), nodes, per_node, spares).value();
}

/// As a program of another host reads it.
plan told(plan p) {
    p.job = 7;
    return parse_plan(to_text(p)).value();
}

}  // namespace

TEST_CASE("without a fabric the ranks are in Slurm's order, and the last nodes wait", "[train]") {
    const auto p = told(plan_in_order(asked("tp=2,dp=3", 4, 2, 1), {"n01", "n02", "n07", "n09"}).value());
    CHECK(p.nodes == names{"n01", "n02", "n07"});
    CHECK(p.spares == names{"n09"});
    CHECK(p.buddies == std::vector<std::uint32_t>{1, 2, 0});
    CHECK(p.shape == "tp=2,dp=3");
    CHECK(p.ranks_per_node == 2);
    CHECK(p.spread == "order=slurm");
}

TEST_CASE("a node keeps its slot in the next run", "[train]") {
    const auto request = asked("dp=3", 4, 1, 1);
    const auto before = plan_in_order(request, {"n01", "n02", "n03", "n04"}).value();
    const auto p = told(plan_in_order(request, {"n00", "n02", "n03", "n04"}, &before).value());
    CHECK(p.nodes == names{"n00", "n02", "n03"});
    CHECK(p.spares == names{"n04"});
    const auto q = told(plan_in_order(request, {"n02", "n03", "n05", "n06"}, &before).value());
    CHECK(q.nodes == names{"n05", "n02", "n03"});
    CHECK(q.spares == names{"n06"});
}

TEST_CASE("a plan of another size is no help, and one of too few nodes is none", "[train]") {
    const auto before = plan_in_order(asked("dp=2", 2, 1, 0), {"n05", "n01"}).value();
    CHECK(plan_in_order(asked("dp=3", 3, 1, 0), {"n01", "n05", "n06"}, &before)->nodes ==
          names{"n01", "n05", "n06"});
    CHECK_FALSE(plan_in_order(asked("dp=3", 3, 1, 0), {"n01", "n05"}));
}

TEST_CASE("one node alone keeps its own copy", "[train]") {
    CHECK(told(plan_in_order(asked("tp=4", 1, 4, 0), {"n01"}).value()).buddies ==
          std::vector<std::uint32_t>{0});
}

}  // namespace test_plan_in_order
