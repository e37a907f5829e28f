// SPDX-License-Identifier: BSD-3-Clause
//
// NVLinks that GPUs of several nodes share: one incident per domain, and the right culprit.
#include <algorithm>
#include <cstdlib>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "fault/cli/commands.hpp"
#include "fault/incident/confidence.hpp"
#include "fault/incident/filter.hpp"
#include "fault/policy/policy_file.hpp"
#include "fault/policy/rule.hpp"
#include "hardware/gpus.hpp"
#include "test/built.hpp"
#include "test/unit/fault/domain_bench.hpp"

namespace test_nvlink_domain {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

using bench = domain_bench;

bool has_evidence_of(const incident& i, const std::string& node) {
    return std::ranges::any_of(i.evidence, [&](const auto& line) { return line.source == node; });
}

}  // namespace

TEST_CASE("NVLinks of one node are judged as ever, whatever its domain", "[fault][domain]") {
    bench b, without;
    for (const auto& line : {lost_packets, link_74, link_74, wants_reset}) {
        const auto known = b.say("n01", line), unknown = without.say("n01", line, "");
        CHECK(known.escalated == unknown.escalated);
    }
    CHECK(b.only().cause == without.only().cause);
    CHECK(b.only().object.kind == object_kind::gpu);
    CHECK(b.only().reason == without.only().reason);
}

TEST_CASE("NVLinks of two nodes of a domain are one incident of the first", "[fault][domain]") {
    bench b;
    const auto* line = GENERATE(&link_74, &fell_149);
    CHECK(b.say("n01", *line).created);
    CHECK_FALSE(b.say("n02", *line).escalated);
    CHECK(b.only().object.node == "n01");
    CHECK(b.only().object.kind == object_kind::gpu);
    CHECK(has_evidence_of(b.only(), "n02"));
    SECTION("what follows on the other node is evidence, too, and takes no node out") {
        CHECK_FALSE(b.say("n02", echo).escalated);
        CHECK_FALSE(b.say("n02", wants_reset).escalated);
        CHECK(b.only().lines == 4);
        CHECK_FALSE(b.only().verdict_on_culprit);
    }
    SECTION("not half a minute later") {
        CHECK(b.say("n02", *line, one_domain, 31'000).created);
        CHECK(b.e.all().size() == 2);
    }
    SECTION("nor what says something of the GPU itself") { CHECK(b.say("n02", ecc_74).created); }
}

TEST_CASE("a healthy peer on another node that is heard first is no culprit", "[fault][domain]") {
    bench b;
    b.say("n01", lost_packets);
    CHECK(b.say("n02", fell_149).escalated);
    CHECK(b.only().object.node == "n02");
    CHECK(b.only().reason == "gpu-reset");
    CHECK_FALSE(b.say("n01", lost_packets).escalated);
}

TEST_CASE("NVLinks of three nodes of a domain accuse its switches", "[fault][domain]") {
    bench b;
    const auto* line = GENERATE(&link_74, &fell_149, &lost_packets);
    b.say("n01", *line);
    b.say("n02", *line);
    CHECK(b.say("n03", *line).escalated);
    const auto& i = b.only();
    CHECK(i.object.kind == object_kind::sw);
    CHECK(i.object.text() == "NVLink domain " + one_domain);
    CHECK(i.reason == "nvlink-domain");
    CHECK(i.cause == "NVLinks failed on GPUs of 3 nodes of one NVLink domain at once: n[01-03]");
    CHECK(kind_of(i) == line_kind::sxid);
    CHECK(sureness_of(i).how == confidence::likely);
    CHECK(i.severity == severity::error);
    for (const auto* node : {"n01", "n02", "n03"}) CHECK(has_evidence_of(i, node));
    SECTION("no node is taken out, whatever the driver asks for and the rules say") {
        for (int n = 1; n <= 3; ++n) CHECK_FALSE(b.say(node_name(n), wants_reset).escalated);
        const auto drains = parse_policy("p.toml", "[[rule]]\nname = \"all\"\naction = \"down\"\n");
        REQUIRE(drains.rules);
        CHECK(shipped_policy().decide(i, b.e.all()).step == step_kind::alert);
        CHECK(drains.rules->decide(i, b.e.all()).step == step_kind::alert);
    }
    SECTION("late repeats are no new incident, a node that was not there is") {
        CHECK_FALSE(b.say("n02", *line, one_domain, 600'000).created);
        CHECK_FALSE(b.only().closed_ms);
        CHECK(b.say("n09", *line, one_domain, 600'000).created);
    }
    SECTION("told late, of what was closed meanwhile, it is history") {
        auto* kept = b.e.find(i.number);
        kept->closed_ms = b.at + 10;
        auto late = event_of(gpu_line(3, *line), b.at, 99, "n02");
        late.nvlink_domain = one_domain;
        late.written_ms = b.at;
        CHECK(b.e.absorb(late, b.at + 1000).past);
    }
    SECTION("the history and people read it as it is") {
        const auto told = to_json(i);
        const auto again = incident_from(told);
        REQUIRE(again);
        CHECK(to_json(*again) == told);
        CHECK(told["object"]["kind"] == "switch");
        CHECK(told["nvlink_domain"] == one_domain);
        CHECK(told["nvlink_nodes"] == nlohmann::json({"n01", "n02", "n03"}));
        incident_filter of_a_node;
        of_a_node.nodes = "n02";
        const auto sieve = incident_sieve::from(of_a_node);
        REQUIRE(sieve);
        CHECK(sieve->passes(i));
        const auto story = incident_story(json_fields(told));
        CHECK(story.find("NVLink domain " + one_domain) != std::string::npos);
        CHECK(story.find("n[01-03]") != std::string::npos);
    }
}

TEST_CASE("seventy-two nodes of a domain are one incident with the lines of each", "[fault][domain]") {
    bench b;
    int judged = 0;
    for (int n = 1; n <= 72; ++n) judged += b.say(node_name(n), n % 2 ? fell_149 : lost_packets).escalated;
    CHECK(judged == 2);  // when it is new, and when the switches are accused
    for (int n = 1; n <= 72; ++n) (void)b.say(node_name(n), wants_reset);
    const auto& i = b.only();
    CHECK(i.shown.size() == 72);
    CHECK(i.lines == 144);
    CHECK(i.root_precedence == static_cast<std::uint8_t>(precedence::alert));
    for (int n = 1; n <= 72; ++n) CHECK(has_evidence_of(i, node_name(n)));
}

TEST_CASE("two domains at once are two incidents, a node without one has its own", "[fault][domain]") {
    bench b;
    for (int n = 1; n <= 4; ++n) {
        b.say(node_name(n), link_74);
        b.say(node_name(n + 10), link_74, other_domain);
    }
    b.say("n20", link_74, "");
    b.say("n21", link_74, "");
    std::vector<std::string> open;
    for (const auto& [number, i] : b.e.all())
        if (!was_folded(i)) open.push_back(i.object.text().substr(0, i.object.text().find(" GPU")));
    CHECK(open == std::vector<std::string>{"NVLink domain " + one_domain, "NVLink domain " + other_domain,
                                           "n20", "n21"});
    CHECK(b.e.all().size() == 6);  // and the first node of each
}

TEST_CASE("a GPU with a fault of its own is the culprit of its domain, heard first or last",
          "[fault][domain]") {
    bench b;
    const auto* own = GENERATE(&off_the_bus, &parity, &own_149);
    const auto* links = GENERATE(&link_74, &fell_149, &lost_packets);
    const int before = GENERATE(0, 1, 2, 3, 5);
    for (int n = 1; n <= before; ++n) b.say(node_name(n), *links);
    CHECK(b.say("n09", *own).escalated);
    for (int n = before + 1; n <= 6; ++n) CHECK_FALSE(b.say(node_name(n), *links).escalated);
    for (int n = 1; n <= 6; ++n) CHECK_FALSE(b.say(node_name(n), wants_reset).escalated);
    const auto& i = b.only();
    CHECK(i.object.kind == object_kind::gpu);
    CHECK(i.object.node == "n09");
    CHECK(i.boot_id == "boot of n09");
    CHECK(i.reason == (own == &off_the_bus ? "gpu-xid-79" : "gpu-reset"));
    for (int n = 1; n <= 6; ++n) CHECK(has_evidence_of(i, node_name(n)));
    // Another that is gone, too, is another fault.
    CHECK(b.say("n08", off_the_bus).created);
}

TEST_CASE("a node that is dead is the culprit of what its domain told before and tells after",
          "[fault][domain]") {
    bench b;
    for (int n = 1; n <= 3; ++n) b.say(node_name(n), lost_packets);
    const auto switches = b.last().number, other = b.say("n30", link_74, other_domain).number;
    const auto number = b.silent("n09", 2000);
    CHECK(b.e.fold_links(number) == std::vector<std::uint64_t>{switches});
    CHECK(b.e.find(switches)->closed_by == "incident " + b.e.find(number)->id());
    CHECK(has_evidence_of(*b.e.find(number), "n02"));
    const auto later = b.say("n04", link_74, one_domain, 3000);
    CHECK(later.number == number);
    CHECK_FALSE(later.escalated);
    CHECK(b.e.find(other)->closed_ms == 0);
}

TEST_CASE("whatever else a node tells stays its own", "[fault][domain]") {
    bench b;
    for (int n = 1; n <= 3; ++n) b.say(node_name(n), link_74);
    const auto switches = b.last().number;
    CHECK(b.say("n01", "13, pid=7, name=python3, Graphics Exception").created);
    // It may be what its partners met.
    const auto own = b.say("n02", "48, pid=7, DBE (double bit error)");
    CHECK(own.created);
    CHECK(own.folded == std::vector<std::uint64_t>{switches});
    CHECK(b.e.find(own.number)->object.node == "n02");
}

TEST_CASE("an NVLink domain in an agent's words is checked", "[fault][domain]") {
    CHECK(hardware::is_nvlink_domain(one_domain));
    CHECK(hardware::is_nvlink_domain("01234567-89ab-cdef-0123-456789abcdef.4294967295"));
    auto e = event_of(gpu_line(3, link_74));
    e.nvlink_domain = one_domain;
    auto told = nlohmann::json::parse(to_json(e).dump());
    CHECK(event_from(told).value().nvlink_domain == one_domain);
    told.erase("nvlink_domain");
    CHECK(event_from(told).value().nvlink_domain.empty());
    for (const auto& bad : {std::string("x"), one_domain + "0000000000", one_domain + "x", "\n" + one_domain,
                            std::string(100'000, 'a'), std::string("01234567-89AB-cdef-0123-456789abcdef.1"),
                            std::string("01234567-89ab-cdef-0123-456789abcdef."),
                            std::string("01234567-89ab-cdef-0123-456789abcdef.01"),
                            std::string("01234567-89ab-cdef-0123-456789abcdef.4294967296")}) {
        INFO(bad.substr(0, 60));
        told["nvlink_domain"] = bad;
        CHECK_FALSE(event_from(told));
    }
    for (const auto& bad :
         {nlohmann::json(7), nlohmann::json(nullptr), nlohmann::json::array({one_domain})}) {
        told["nvlink_domain"] = bad;
        CHECK_FALSE(event_from(told).value_or(event{}).nvlink_domain.size());
    }
}

TEST_CASE("NVIDIA's library is asked for the NVLink domain", "[fault][domain]") {
    const auto asked = [](const std::string& library) {
        ::setenv("FAKE_NVML", "wwwwwwwwl", 1);
        ::setenv("FAKE_FABRIC", "aabcznifa", 1);
        auto opened = hardware::open_nvml(library);
        REQUIRE(opened);
        const auto all = hardware::ask_all(**opened);
        ::unsetenv("FAKE_FABRIC");
        REQUIRE(all);
        const auto told = hardware::gpu_answers_from(hardware::to_json(*all));
        REQUIRE(told);
        std::vector<std::optional<std::string>> out;
        for (const auto& gpu : *told) out.push_back(gpu.value().nvlink_domain);
        return out;
    };
    const std::string a = "0a0a0a0a-0a0a-0a0a-0a0a-0a0a0a0a0a0a", b = "b0b0b0b0-b0b0-b0b0-b0b0-b0b0b0b0b0b0";
    const std::vector<std::optional<std::string>> all{
        a + ".7", a + ".7", b + ".7", a + ".4294967295", "", "", std::nullopt, std::nullopt, std::nullopt};
    CHECK(asked(banyan::testing::built("fake_nvml")) == all);
    CHECK(asked(banyan::testing::built("fake_nvml_without_FABRIC_V")) == all);
    CHECK(asked(banyan::testing::built("fake_nvml_without_FABRIC")) ==
          std::vector<std::optional<std::string>>(9));
    auto told = nlohmann::json::parse(R"({"gpus":[]})");
    hardware::gpu_health one{.bus_id = "00000000:01:00.0"};
    told = hardware::to_json({one});
    told["gpus"][0]["nvlink_domain"] = "garbage";
    CHECK_FALSE(hardware::gpu_answers_from(told));
}

}  // namespace test_nvlink_domain
