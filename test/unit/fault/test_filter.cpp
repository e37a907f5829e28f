// SPDX-License-Identifier: BSD-3-Clause
//
// Which incidents a request asks for, and the times that people write.
#include <cstdlib>
#include <ctime>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "fault/cli/moment.hpp"
#include "fault/incident/filter.hpp"

namespace test_filter {

using namespace banyan;
using namespace banyan::fault;
using nlohmann::json;

namespace {

bool passes(const json& request, const incident& i) {
    const auto sieve = incident_sieve::from(json_fields(request));
    REQUIRE(sieve);
    return sieve->passes(i);
}

std::string error_of(const json& request) {
    const auto sieve = incident_sieve::from(json_fields(request));
    return sieve ? std::string() : sieve.error().text();
}

}  // namespace

TEST_CASE("incidents are found by what they are", "[fault]") {
    incident i;
    i.object.node = "n03";
    i.reason = "gpu-reset";
    i.jobs = {7, 8};
    i.incident_ms = 5000;
    i.state = incident_state::held;
    CHECK(passes(json::object(), i));
    for (const char* yes : {R"({"nodes":"n03"})", R"({"nodes":"n[01-04]"})", R"({"nodes":"a,n03"})",
                            R"({"reason":"gpu-reset"})", R"({"state":"open"})", R"({"state":"held"})",
                            R"({"job":7})", R"({"job":8,"nodes":"n03","state":"held"})",
                            R"({"since_ms":5000})", R"({"until_ms":5000})", R"({"nodes":""})"})
        CHECK(passes(json::parse(yes), i));
    for (const char* no : {R"({"nodes":"n04"})", R"({"nodes":"n0"})", R"({"reason":"gpu"})",
                           R"({"state":"closed"})", R"({"state":"done"})", R"({"job":9})",
                           R"({"job":7,"nodes":"n04"})", R"({"since_ms":5001})", R"({"until_ms":4999})"})
        CHECK_FALSE(passes(json::parse(no), i));
    i.closed_ms = 1;
    CHECK(passes({{"state", "closed"}}, i));
    CHECK_FALSE(passes({{"state", "open"}}, i));
    CHECK_FALSE(passes({{"state", "held"}}, i));
    i.object.node.clear();
    i.object.ends = {{"leaf1", "leaf1", 3, 1}, {"n05", "n05 HCA-1", 1, 2}};
    CHECK(passes({{"nodes", "n05"}}, i));
    CHECK(passes({{"nodes", "leaf1"}}, i));
    CHECK_FALSE(passes({{"nodes", "n06"}}, i));
}

TEST_CASE("requests that make no sense are refused", "[fault]") {
    CHECK(error_of({{"state", "opne"}}).find("\"opne\" is no state; possible are open, acting") == 0);
    for (const char* wrong : {R"({"nodes":3})", R"({"nodes":"n[1-"})", R"({"nodes":"n[1-100000]"})",
                              R"({"job":-1})", R"({"job":"7"})", R"({"since_ms":1e9})", R"({"since_ms":"1"})",
                              R"({"until_ms":null})", R"({"reason":[]})", R"({"state":{}})"}) {
        CAPTURE(wrong);
        CHECK_FALSE(error_of(json::parse(wrong)).empty());
    }
}

TEST_CASE("a filter says in a request what it is", "[fault]") {
    json out = json::object();
    incident_filter().write(out);
    CHECK(out.empty());
    incident_filter f{
        .nodes = "n1", .reason = "disk", .state = "open", .job = 0, .since_ms = 1, .until_ms = 2};
    f.write(out);
    CHECK(out ==
          json::parse(R"({"nodes":"n1","reason":"disk","state":"open","job":0,"since_ms":1,"until_ms":2})"));
}

TEST_CASE("times as people write them", "[fault]") {
    constexpr std::int64_t now = 1'795'392'000'000;
    CHECK(moment_from("2h", now) == now - 7'200'000);
    CHECK(moment_from("90", now) == now - 90'000);
    CHECK(moment_from("1000000h", now) == 0);
    CHECK(moment_from("1970-01-01T00:01Z", now) == 60'000);
    CHECK(moment_from("1970-01-02Z", now) == 86'400'000);
    CHECK(moment_from("1970-01-01 00:00:07Z", now) == 7'000);
    std::tm local{};
    local.tm_year = 126, local.tm_mon = 10, local.tm_mday = 23, local.tm_hour = 13, local.tm_isdst = -1;
    CHECK(moment_from("2026-11-23T13:00", now) == std::int64_t{std::mktime(&local)} * 1000);
    for (const char* none : {"", "yesterday", "2026-13-01", "2026-11-23T", "2026-11-23T13:45:00+01:00", "-2h",
                             "2026-11-23x", "1969-01-01Z"}) {
        CAPTURE(none);
        const auto got = moment_from(none, now);
        REQUIRE_FALSE(got);
        CHECK(got.error().code == errc::invalid_input);
    }
}

}  // namespace test_filter
