// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "test/unit/train/example_plan.hpp"
#include "train/admin_comment.hpp"
#include "train/job_size.hpp"
#include "train/min_dp.hpp"
#include "train/plan_summary.hpp"

namespace test_min_dp {

using namespace banyan;
using namespace banyan::train;
using banyan::train::test::example_plan;
using names = std::vector<std::string>;

namespace {

options asked(const char* shape, std::uint32_t min_dp) {
    options out;
    out.parallel = topo::parse_shape(shape).value();
    out.min_dp = min_dp;
    return out;
}

struct elastic {
    topo::request full;
    std::uint32_t min_nodes;
};

elastic full(const char* shape, std::uint32_t nodes, std::uint32_t per_node, std::uint32_t min_dp) {
    auto request = request_from(asked(shape, min_dp), {nodes, nodes, 0, per_node, 0}).value().value();
    const auto min_nodes = nodes_of_groups(request, min_dp).value();
    return {std::move(request), min_nodes};
}

std::optional<topo::request> on(const elastic& e, std::uint32_t nodes) {
    return request_on(e.full, e.min_nodes, nodes);
}

std::string refusal(const char* shape, std::uint32_t nodes, std::uint32_t per_node, std::uint32_t min_dp) {
    const auto request = request_from(asked(shape, min_dp), {nodes, nodes, 0, per_node, 0});
    REQUIRE_FALSE(request);
    return request.error().text();
}

}  // namespace

TEST_CASE("--train-min-dp is a number of groups from one on", "[train]") {
    CHECK(parse_min_dp("6") == 6u);
    for (const char* wrong : {"", "0", "-1", "six", "6 ", "99999999999", "1.5"}) {
        const auto parsed = parse_min_dp(wrong);
        REQUIRE_FALSE(parsed);
        CHECK(parsed.error().what.starts_with("--train-min-dp"));
        CHECK(parsed.error().hint.find("--train-min-dp=6") != std::string::npos);
    }
    options alone;
    alone.min_dp = 2;
    CHECK(request_from(alone, {2, 2, 2, 0, 0}).error().text().find("--train-min-dp needs --train-parallel") ==
          0);
}

TEST_CASE("what cannot be left out whole is refused with the reason", "[train]") {
    CHECK(refusal("tp=2,dp=4", 4, 2, 5).find("more than the dp=4") != std::string::npos);
    CHECK(refusal("tp=4", 2, 2, 2).find("more than the dp=1") != std::string::npos);
    CHECK(refusal("dp=4,tp=2", 4, 2, 3).find("name dp last") != std::string::npos);
    CHECK(refusal("tp=3,dp=4", 6, 2, 3).find("evenly") != std::string::npos);
    // A dimension of one rank may stand anywhere.
    CHECK(full("tp=2,dp=4,pp=1", 4, 2, 3).min_nodes == 3);
    CHECK(full("tp=2,dp=4", 4, 2, 4).min_nodes == 4);
}

TEST_CASE("the largest number of whole groups that the nodes hold", "[train]") {
    struct row {
        const char* shape;
        std::uint32_t nodes, per_node, min_dp, left, then;
        const char* now;
    };
    const row rows[] = {
        {"tp=2,dp=8", 8, 2, 6, 8, 8, "tp=2,dp=8"},
        {"tp=2,dp=8", 8, 2, 6, 9, 8, "tp=2,dp=8"},
        {"tp=2,dp=8", 8, 2, 6, 7, 7, "tp=2,dp=7"},
        {"tp=2,dp=8", 8, 2, 6, 6, 6, "tp=2,dp=6"},
        {"tp=2,dp=8", 8, 2, 6, 5, 0, ""},
        {"tp=2,pp=2,dp=4", 8, 2, 1, 7, 6, "tp=2,pp=2,dp=3"},  // two nodes a group
        {"tp=2,pp=2,dp=4", 8, 2, 1, 3, 2, "tp=2,pp=2,dp=1"},
        {"tp=2,pp=2,dp=4", 8, 2, 1, 1, 0, ""},
        {"tp=2,dp=8", 4, 4, 5, 3, 3, "tp=2,dp=6"},  // two groups a node
        {"tp=2,dp=8", 4, 4, 5, 2, 0, ""},
        {"tp=2,dp=8", 8, 2, 8, 7, 0, ""},
    };
    for (const auto& r : rows) {
        CAPTURE(r.shape, r.left);
        const auto now = on(full(r.shape, r.nodes, r.per_node, r.min_dp), r.left);
        REQUIRE(now.has_value() == (r.then != 0));
        if (!now) continue;
        CHECK(now->nodes == r.then);
        CHECK(now->dims.text() == r.now);
        CHECK(now->nodes * now->ranks_per_node == now->dims.ranks());
    }
    auto without = full("tp=2,dp=8", 8, 2, 6);
    without.min_nodes = 0;
    CHECK_FALSE(on(without, 7));
}

TEST_CASE("the first slots of fewer groups have the ranks that they had", "[train]") {
    for (const char* shape : {"tp=2,pp=2,dp=4", "pp=2,tp=2,dp=4", "tp=4,dp=4", "pp=4,tp=4,dp=2"}) {
        const auto all = full(shape, 8, topo::parse_shape(shape)->ranks() / 8, 1);
        const auto slots = topo::ranks_of_slots(all.full);
        for (std::uint32_t left = 1; left < 8; ++left) {
            const auto now = on(all, left);
            if (!now) continue;
            CAPTURE(shape, left);
            const auto fewer = topo::ranks_of_slots(*now);
            CHECK(std::vector(slots.begin(), slots.begin() + now->nodes) == fewer);
        }
    }
}

TEST_CASE("nodes stay in their slots, and the others fill the gaps", "[train]") {
    const names planned{"n1", "n2", "n3", "n4"};
    CHECK(keep_nodes(planned, {"n1", "n3", "n4"}) == names{"n1", "n4", "n3"});
    CHECK(keep_nodes(planned, {"n3", "n2", "n1"}) == names{"n1", "n2", "n3"});
    CHECK(keep_nodes({"n1", "n4", "n3"}, {"n1", "n2", "n3", "n4"}) == names{"n1", "n4", "n3", "n2"});
    CHECK(keep_nodes({}, {"n1", "n2"}) == names{"n1", "n2"});
}

TEST_CASE("a plan of fewer groups keeps what the job asked for", "[train]") {
    auto p = example_plan();
    p.min_nodes = 2;
    p.nodes.resize(2);
    p.addrs.resize(2);
    const auto text = to_text(p);
    CHECK(text.find("\"version\":4") != std::string::npos);
    const auto read = parse_plan(text).value();
    CHECK(read.nodes == p.nodes);
    CHECK(read.min_nodes == 2);
    CHECK(read.shape == p.shape);
    CHECK(read.buddies == p.buddies);
    const auto s = parse_summary(summary_text(p)).value();
    CHECK(s.nodes == 4);
    CHECK(s.min_nodes == 2);
    CHECK(admin_comment(p).starts_with("banyan: tp=2,pp=2,dp=1 nodes=2 ranks=4 spares=2"));
    CHECK(admin_comment(p).ends_with(" of=tp=2,pp=2,dp=2"));
    CHECK(is_admin_comment(admin_comment(p)));

    SECTION("fewer than may be, or no whole group") {
        p.min_nodes = 3;
        CHECK_FALSE(parse_plan(to_text(p)));
        p.min_nodes = 2;
        p.nodes.resize(1);
        p.addrs.clear();
        CHECK_FALSE(parse_plan(to_text(p)));
    }
    SECTION("more slots than a plan may have nodes, though few of them have one") {
        p.shape = "dp=131072";
        p.ranks_per_node = 1;
        p.buddies.resize(131072);
        for (std::uint32_t slot = 0; slot < p.buddies.size(); ++slot) p.buddies[slot] = slot ^ 1;
        CHECK_FALSE(parse_plan(to_text(p)));
    }
    SECTION("without the option nothing is other than before") {
        auto plain = example_plan();
        CHECK(to_text(plain).find("\"version\":3") != std::string::npos);
        CHECK(to_text(plain).find("min_nodes") == std::string::npos);
        plain.nodes.resize(2);
        plain.addrs.resize(2);
        CHECK_FALSE(parse_plan(to_text(plain)));
    }
}

}  // namespace test_min_dp
