// SPDX-License-Identifier: BSD-3-Clause
//
// Which of a domain's nodes is the culprit, once something was begun for another: nothing that was done,
// approved or counted for the one may count for the other, and no fault of a GPU's own is lost.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "test/unit/fault/domain_bench.hpp"

namespace test_nvlink_culprits {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

std::size_t open_ones(const engine& e) {
    return static_cast<std::size_t>(
        std::ranges::count_if(e.all(), [](const auto& p) { return p.second.closed_ms == 0; }));
}

}  // namespace

TEST_CASE("a worse culprit of a domain has nothing of the one before it", "[fault][domain]") {
    domain_bench b;
    const auto* worse = GENERATE(&fell_149, &off_the_bus);
    auto first = b.made("n01", lost_packets);
    first.job = 7;
    b.e.absorb(first, b.at);
    auto& i = *b.e.find(1);
    i.sealed_ms = i.held_ms = b.at;
    i.state = incident_state::held;
    i.decided = 4;
    i.jobs = {7, 8};
    i.ranks.emplace_back().job = 7;
    const auto came = b.say("n02", *worse);
    CHECK(came.created);
    CHECK(came.folded == std::vector<std::uint64_t>{1});
    const auto& now = *b.e.find(came.number);
    CHECK(now.object.node == "n02");
    CHECK(now.boot_id == "boot of n02");
    CHECK(now.sealed_ms == 0);
    CHECK(now.held_ms == 0);
    CHECK(now.approved_by.empty());
    CHECK(now.jobs.empty());
    CHECK(now.ranks.empty());
    CHECK(now.accused == 0);
    CHECK(now.lines == 2);
    CHECK(i.object.node == "n01");  // what counts for a node is given back for that one
    CHECK(i.closed_by == "incident f00002");
    CHECK(i.state == incident_state::done);
    CHECK(i.held_ms == 0);
}

TEST_CASE("what was begun, approved or ruled on for one node of a domain stays its own", "[fault][domain]") {
    domain_bench b;
    b.say("n01", fell_149);
    auto& i = *b.e.find(1);
    const int what = GENERATE(0, 1, 2, 3, 4, 5);
    if (what == 0) i.node_out_ms = b.at;
    if (what == 1) i.begun = true;
    if (what == 2) i.approved_by = "uid 7";
    if (what == 3) i.followed.emplace_back().job = 7;
    if (what == 4) i.swept = "fit";
    if (what == 5) i.cancelled_by = "uid 7";
    SECTION("a GPU with a fault of its own has an incident beside it") {
        const auto own = b.say("n02", off_the_bus);
        CHECK(own.created);
        CHECK(own.escalated);
        CHECK(own.folded.empty());
        CHECK(b.e.find(own.number)->object.node == "n02");
        REQUIRE(b.e.find(own.number)->find_action("beside", "f00001"));
    }
    SECTION("and so have the switches") {
        for (int n = 2; n <= 5; ++n) b.say(node_name(n), fell_149);
        CHECK(b.last().object.kind == object_kind::sw);
        CHECK(b.say("n06", fell_149).number == b.last().number);
        // Who cancelled it did so for the one node, and the others' are not in it.
        CHECK(i.shown.size() == (what == 5 ? 1 : 2));
        CHECK(open_ones(b.e) == 2);
    }
    CHECK(i.object.node == "n01");
    CHECK(i.object.kind == object_kind::gpu);
    CHECK(i.closed_ms == 0);
    CHECK(b.say("n01", wants_reset).number == 1);
    CHECK(b.say("n01", fell_149).number == 1);
}

TEST_CASE("a controller that starts anew knows for which node of a domain something was begun",
          "[fault][domain]") {
    domain_bench b;
    b.say("n01", fell_149);
    b.e.find(1)->begun = true;
    const auto again = incident_from(to_json(b.only()));
    REQUIRE(again);
    CHECK(again->begun);
    CHECK_FALSE(may_be_folded(*again));
}

TEST_CASE("a GPU that wants a reset of its own is not lost in its domain's incident", "[fault][domain]") {
    domain_bench b;
    SECTION("beside what its own GPU told") {
        b.say("n02", "58, pid=7, an error of its memory");
        for (int n = 1; n <= 3; ++n) b.say(node_name(n), link_74);
        const auto came = b.say("n02", wants_reset);
        CHECK(came.number == 1);
        CHECK(came.escalated);
        CHECK(b.e.find(1)->reason == "gpu-reset");
    }
    SECTION("where its node is out for another GPU") {
        auto other = b.made("n02", "48, pid=7, DBE (double bit error)");
        other.fault.bdf = "0000:99:00";
        b.e.absorb(other, b.at);
        b.e.find(1)->node_out_ms = b.at;
        b.at += 600'000;
        for (int n = 1; n <= 3; ++n) b.say(node_name(n), link_74);
        const auto came = b.say("n02", wants_reset);
        CHECK(came.created);
        CHECK(came.escalated);
    }
    SECTION("a fault of its own in the incident of a node that was heard before") {
        b.say("n01", off_the_bus);
        b.say("n02", link_74);
        const auto came = b.say("n02", own_149);
        CHECK(came.created);
        CHECK(came.escalated);
    }
    SECTION("what follows from the domain's fault alone is evidence") {
        for (int n = 1; n <= 3; ++n) b.say(node_name(n), link_74);
        CHECK(b.say("n02", wants_reset).number == b.only().number);
    }
}

TEST_CASE("a GPU that is out does not answer for its neighbours' links for days", "[fault][domain]") {
    domain_bench b;
    b.say("n09", off_the_bus);
    b.e.find(1)->node_out_ms = b.at;
    CHECK(b.say("n02", fell_149).number == 1);
    SECTION("though they told of it once") {
        const auto later = b.say("n02", fell_149, one_domain, 3'600'000);
        CHECK(later.created);
        CHECK(later.escalated);
    }
    SECTION("nor while it, or they, go on") {
        for (int n = 0; n < 5; ++n) {
            b.say("n09", off_the_bus, one_domain, 10'000);
            b.say("n01", lost_packets, one_domain, 1'000);
        }
        CHECK(b.say("n02", fell_149).number != 1);
    }
    SECTION("it goes on itself, until it is started again") {
        CHECK(b.say("n09", off_the_bus, one_domain, 3'600'000).number == 1);
        auto again = b.made("n09", off_the_bus);
        again.boot_id = "the next boot";
        CHECK(b.e.absorb(again, b.at).created);
    }
}

TEST_CASE("a storm that a healthy peer goes on with is one with its culprit", "[fault][domain]") {
    domain_bench b;
    b.say("n01", off_the_bus);
    const int lines = GENERATE(1, 200);
    for (int round = 0; round < 10; ++round)
        for (int n = 0; n < lines; ++n) b.say("n02", fell_149, one_domain, n == 0 ? 20'000 : 1);
    CHECK(b.e.all().size() == 1);
    CHECK(b.say("n02", fell_149, one_domain, 40'000).created);  // a new one
}

TEST_CASE("what somebody cancelled or closed takes no other node's lines", "[fault][domain]") {
    domain_bench b;
    SECTION("of one node") {
        b.say("n01", fell_149);
        b.e.find(1)->cancelled_by = "uid 7";
        CHECK(b.say("n02", fell_149).created);
        CHECK(b.say("n01", fell_149).number == 1);
    }
    SECTION("of the switches") {
        for (int n = 1; n <= 3; ++n) b.say(node_name(n), link_74);
        b.last().cancelled_by = "uid 7";
        CHECK(b.say("n02", link_74).created);
    }
    SECTION("closed") {
        for (int n = 1; n <= 3; ++n) b.say(node_name(n), link_74);
        b.last().closed_ms = b.at + 1;
        CHECK(b.say("n02", link_74, one_domain, 2).created);
    }
}

TEST_CASE("what is told late of a closed incident of its domain", "[fault][domain]") {
    domain_bench b;
    b.say("n01", fell_149);
    b.say("n02", fell_149);
    const auto late = [&](const std::string& node, const std::string& rest) {
        auto e = b.made(node, rest);
        e.written_ms = b.at;
        return b.e.absorb(e, b.at + 1000);
    };
    b.e.find(1)->closed_ms = b.at + 10;
    CHECK(late("n02", fell_149).past);
    CHECK_FALSE(late("n02", wants_reset).past);  // nobody knew that it wants that
    b.e.find(2)->closed_ms = b.at + 10;
    CHECK_FALSE(late("n03", own_149).past);
    CHECK_FALSE(late("n04", fell_149).past);  // nobody saw that one
}

TEST_CASE("nothing is history of an incident that became evidence of another", "[fault][domain]") {
    domain_bench b;
    b.say("n01", fell_149);
    for (int n = 2; n <= 3; ++n) b.say(node_name(n), fell_149);
    REQUIRE(was_folded(*b.e.find(1)));
    auto e = b.made("n01", off_the_bus);
    e.written_ms = b.at - 1;
    const auto came = b.e.absorb(e, b.at);
    CHECK_FALSE(came.past);
    CHECK(came.created);
    CHECK(came.escalated);
    CHECK(b.e.find(came.number)->reason == "gpu-xid-79");
}

TEST_CASE("what tells no domain leaves the node in its own", "[fault][domain]") {
    domain_bench b;
    b.say("n01", link_74);
    b.say("n02", link_74);
    auto& i = *b.e.find(1);
    SECTION("a GPU that is gone, by an agent that has just begun") {
        auto e = b.made("n01", off_the_bus, "");
        CHECK(b.e.absorb(e, b.at).escalated);
        CHECK(i.xid == 79u);
        CHECK(i.own_fault);
        CHECK(b.say("n03", link_74).number == 1);
    }
    SECTION("the PCI Express bus") {
        auto e = b.made("n01", link_74, "");
        e.fault = symptom_at(catalog::symptom::pcie_fatal, "0000:03:00", "0000:03:00", "PCIe fatal error");
        CHECK(b.e.absorb(e, b.at).number == 1);
        CHECK(i.symptom == "pcie-fatal");
    }
    CHECK(i.nvlink_domain == one_domain);
    CHECK(i.shown.size() >= 2);
}

TEST_CASE("other nodes' lines are neither the culprit's fault again, nor of its job", "[fault][domain]") {
    domain_bench b;
    b.say("n01", link_74);
    auto e = b.made("n02", link_74);
    e.job = 8;
    e.line_ms += 29'000;
    b.e.absorb(e, b.at);
    b.say("n02", link_74, one_domain, 29'900);
    CHECK(b.only().lines == 3);
    CHECK(b.only().seen.size() == 1);
    CHECK(b.only().accused == 0);
    CHECK(b.only().jobs.empty());
    CHECK(b.only().last_ms == b.only().line_ms);
}

TEST_CASE("two nodes long ago and a third now are no three at once", "[fault][domain]") {
    domain_bench b;
    b.say("n01", link_74);
    b.say("n02", link_74);
    for (int n = 0; n < 10; ++n) b.say("n01", link_74, one_domain, 20'000);
    CHECK(b.say("n03", link_74).created);
    CHECK(b.last().object.node == "n03");
    CHECK(open_ones(b.e) == 2);
}

TEST_CASE("an alert of another fault beside which a link failed is no link's", "[fault][domain]") {
    domain_bench b;
    b.say("n01", "58, pid=7, an error of its memory");
    CHECK(b.say("n01", link_74).number == 1);
    CHECK(b.say("n02", link_74).created);
    CHECK(b.say("n03", link_74).number == 2);
    CHECK(b.say("n04", link_74).created);
    CHECK(b.last().object.kind == object_kind::sw);
    CHECK(b.e.find(1)->closed_ms == 0);
}

}  // namespace test_nvlink_culprits
