// SPDX-License-Identifier: BSD-3-Clause
//
// Incidents as JSON: read back from the history, and shown to a person whatever a controller has said.
#include <array>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "fault/cli/commands.hpp"
#include "fault/incident/incident.hpp"

namespace test_incident_json {

using namespace banyan::fault;
using banyan::json_fields;
using nlohmann::json;

namespace {

incident example() {
    incident i;
    i.number = 12;
    i.object = {object_kind::gpu, "n04",           3,  "0000:1b:00.0",
                "GPU-1",          "1653824017239", "", {{"n04", "spine 1", 7, 0xabcd}},
                "nvme0"};
    i.reason = "gpu-xid-79";
    i.cause = "Xid 79";
    i.jobs = {1ull << 40};
    i.actions = {{"drain", "n04", 5, "done"}};
    i.evidence = {{3, "kernel", "NVRM: Xid", 2}};
    i.codes = {{79, 2}};
    i.ranks = {{7, 2, 0, 32, "8-15", ""}, {9, 0, 0, 0, "", "job 9 was placed without a plan"}};
    i.followed = {{7, 2, true, 5, "n01", {"n01", "n04"}, 3}};
    i.verdict = 2;
    i.line_ms = 3;
    i.incident_ms = 4;
    return i;
}

}  // namespace

TEST_CASE("an incident is read as it was written", "[incident]") {
    const auto text = to_json(example());
    const auto back = incident_from(json::parse(text.dump()));
    REQUIRE(back);
    CHECK(to_json(*back) == text);
    CHECK(back->followed == example().followed);
    CHECK(back->ranks == example().ranks);
}

TEST_CASE("ranks are shown, and those that are not known are told of", "[incident]") {
    CHECK(ranges_text({}).empty());
    CHECK(ranges_text({4}) == "4");
    CHECK(ranges_text({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
    const auto text = json::parse(to_json(example()).dump());
    const auto story = incident_story(json_fields(text));
    CHECK(story.find("8-15 of the 32 of job 7 were on the node (step 0)") != std::string::npos);
    CHECK(story.find("1653824017239") != std::string::npos);
    CHECK(story.find("of job 9: not known, job 9 was placed without a plan") != std::string::npos);
}

TEST_CASE("a user reads neither logs nor others' steps", "[incident]") {
    auto i = example();
    i.actions.push_back({"agent_seal", "n04", 6, R"([{"job":1,"replicated":true,"step":6}])"});
    i.actions.push_back({"seal", "n04", 7, "2/2 nodes answered; job 1 step 6, replicated"});
    const auto told = users_json(i).dump();
    CHECK(told.find("NVRM") == std::string::npos);
    CHECK(told.find("step 6") == std::string::npos);
    CHECK(told.find("replicated") == std::string::npos);
    CHECK(told.find(R"("result":"done")") != std::string::npos);
}

TEST_CASE("an incident that is not readable says where", "[incident]") {
    struct row {
        const char* at;
        json value;
        const char* why;
    };
    const row rows[] = {
        {"/severity", "dire", "\"severity\" is a text of 4 bytes, expected one of"},
        {"/object/ends/0/port", "seven", "\"object.ends[0].port\" is a text of 5 bytes, expected a number"},
        {"/evidence/0/repeats", -1, "\"evidence[0].repeats\" is -1, expected a number from 0"},
        {"/followed/0/nodes", "n[1", "\"n[1\" is not a host list: a bracket is not closed"},
        {"/followed/0/job", -1, "\"followed[0].job\" is -1, expected a number from 0"},
        {"/ranks/0/of", "x", "\"ranks[0].of\" is a text of 1 bytes, expected a number"},
        {"/actions", 5, "\"actions\" is 5, expected a list"},
        {"/codes/79", "x", "\"codes.79\" is a text of 1 bytes, expected a number"},
        {"/verdict", 5'000'000'000, "\"verdict\" is 5000000000, expected a number from 0 to 4294967295"},
        {"/object", "gpu", "\"object\" is a text of 3 bytes, expected an object"}};
    for (const auto& r : rows) {
        auto text = to_json(example());
        text[json::json_pointer(r.at)] = r.value;
        const auto read = incident_from(json::parse(text.dump()));
        INFO(r.at);
        REQUIRE_FALSE(read);
        INFO(read.error().what);
        CHECK(read.error().what.starts_with(std::string("incident f00012 in the history: ") + r.why));
    }
    CHECK_FALSE(incident_from(json::parse("x", nullptr, false)));
    auto bare = to_json(example());
    for (const auto* key : {"evidence", "actions", "codes", "times", "jobs", "verdict", "boot"})
        bare.erase(key);
    CHECK(incident_from(bare));  // what an older release had not written
}

TEST_CASE("what was decided keeps its weight", "[incident]") {
    auto text = to_json(example());
    for (const auto* word : {"ignore", "log", "notify-user", "alert", "seal", "sweep", "restart-step",
                             "requeue", "drain", "down"}) {
        text["asked"] = word;
        CHECK(to_json(incident_from(text).value())["asked"] == word);
    }
    text.erase("asked");
    CHECK(incident_from(text)->decided == UINT8_MAX);
}

TEST_CASE("an answer of another release is shown as far as it is understood", "[incident]") {
    auto text = json::parse(to_json(example()).dump());
    CHECK(incident_story(json_fields(text)).find("2 more") != std::string::npos);
    const auto whole = text;
    for (const auto& [key, value] : whole.items())
        for (const auto& other : {json("text"), json(-7), json::array({1, "x"}), json::object(), json()}) {
            text[key] = other;
            CHECK_FALSE(incident_row(json_fields(text)).empty());
            CHECK_FALSE(incident_story(json_fields(text)).empty());
            text[key] = value;
        }
    const json agents{{"agents", {5, {{"node", 7}, {"connected", "yes"}}}}};
    CHECK(agent_table(*json_fields(agents).list("agents")).find("away") != std::string::npos);
    const json domains{{"agents",
                        {{{"node", "n1"}, {"nvlink_domain", "a-b.3"}},
                         {{"node", "n2"}, {"nvlink_domain", ""}},
                         {{"node", "n3"}}}}};
    CHECK(nvlink_domain_lines(*json_fields(domains).list("agents")) == "n1 a-b.3\nn2 -\n");
    const json status{{"pid", "x"}, {"dry_run", 0}, {"opensm_log", 5}};
    CHECK(status_text(json_fields(status)).find("not watched") != std::string::npos);
}

}  // namespace test_incident_json
