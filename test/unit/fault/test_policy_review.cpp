// SPDX-License-Identifier: BSD-3-Clause
//
// What is said of a policy before anything breaks, and what it would have done about a log.
#include <set>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "fault/cli/log_time.hpp"
#include "fault/policy/review.hpp"
#include "fault/policy/samples.hpp"
#include "fault/policy/trial.hpp"
#include "test/unit/fault/lines.hpp"

namespace test_policy_review {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

policy made(std::string_view text) {
    auto read = parse_policy("p", text);
    for (const auto& p : read.problems) UNSCOPED_INFO(p.text("p"));
    REQUIRE(read.rules);
    return std::move(*read.rules);
}

std::string warnings_of(std::string_view text) {
    std::string out;
    for (const auto& p : review(made(text)).warnings) out += p.text("p") + "\n";
    return out;
}

std::string rule_text(const char* name, const char* conditions, const char* action) {
    return fmt::format("[[rule]]\nname = \"{}\"\n{}\naction = \"{}\"\n", name, conditions, action);
}

const std::string rest = rule_text("rest", "", "log");

void check_review_of(std::size_t rules) {
    std::string many;
    for (std::size_t n = 0; n < rules; ++n)
        many +=
            rule_text(fmt::format("r{}", n).c_str(), fmt::format("xid = \"{}-99999\"", n + 1).c_str(), "log");
    const auto all = review(made(many));
    CHECK(all.decides.size() == rules);
    CHECK(all.warnings.size() == rules);  // all but the first, and what no rule is for
}

}  // namespace

TEST_CASE("the shipped policy has nothing to warn of, and every rule is for something", "[fault]") {
    const auto all = review(shipped_policy());
    for (const auto& p : all.warnings) UNSCOPED_INFO(p.text("shipped"));
    CHECK(all.warnings.empty());
    CHECK(all.undecided.empty());
    REQUIRE(all.decides.size() == shipped_policy().rules().size());
    for (const auto& one : all.decides) CHECK_FALSE(one.empty());
    CHECK(text_of(all.decides.back()).find("79") != std::string::npos);
    // The promise: no application's Xid drains.
    for (const auto& s : samples_for(shipped_policy()))
        if (s.what.root_precedence == static_cast<std::uint8_t>(precedence::app))
            CHECK(shipped_policy().decide(s.what).step == step_kind::none);
}

TEST_CASE("the samples have every kind, weight, culprit and reason", "[fault]") {
    std::set<std::string> reasons;
    std::set<std::uint8_t> weights;
    std::set<line_kind> kinds;
    std::set<object_kind> objects;
    std::set<severity> severities;
    for (const auto& s : samples_for(shipped_policy())) {
        reasons.insert(s.what.reason);
        weights.insert(s.what.root_precedence);
        kinds.insert(kind_of(s.what));
        objects.insert(s.what.object.kind);
        severities.insert(s.what.severity);
    }
    CHECK(reasons.size() == reason_words().size());
    for (const auto reason : reason_words()) CHECK(reasons.contains(std::string(reason)));
    CHECK(weights.size() == class_words().size());
    CHECK(kinds.size() == kind_words().size());
    CHECK(objects.size() == object_words().size());
    CHECK(severities.size() == severity_words().size());
}

TEST_CASE("rules that never decide are told, with those before them", "[fault]") {
    const auto got =
        warnings_of(rule_text("all", "kind = \"xid\"", "log") + rule_text("one", "xid = 79", "down") + rest);
    CHECK(got ==
          "p:5:1: warning: rule \"one\": it never decides: others before it take all that it is for; put it "
          "before "
          "rule \"all\" of line 1\n");
    // One that counts leaves something to those after it.
    CHECK(warnings_of(rule_text("all", "kind = \"xid\"\ncount = 2\nwithin = \"1h\"", "log") +
                      rule_text("one", "xid = 79", "down") + rest)
              .empty());
    CHECK(warnings_of(rule_text("none", "kind = \"fabric\"\nxid = 79", "log") + rest)
              .find("rule \"none\": it is for nothing that banyan knows") != std::string::npos);
    // A number that the catalogue does not have may come.
    CHECK(warnings_of(rule_text("new", "xid = 4711", "alert") + rest).empty());
    CHECK(warnings_of(rule_text("new", "sxid = \"20000-20100\"", "alert") + rest).empty());
}

TEST_CASE("rules that drain for applications, or links, or leave something out, are told", "[fault]") {
    const auto apps = warnings_of(rule_text("strict", "xid = [13, 31, 79]", "drain") + rest);
    CHECK(apps.find(
              "rule \"strict\": it takes nodes out for what accuses the application (Xid 13, 31); users") !=
          std::string::npos);
    CHECK(warnings_of(rule_text("strict", "xid = 13\ncount = 9\nwithin = \"1h\"", "down") + rest)
              .find("accuses the application") != std::string::npos);
    CHECK(warnings_of(rule_text("seals", "xid = 13", "seal") + rest).empty());
    const auto all = warnings_of(rule_text("all", "", "down"));
    CHECK(all.find("job") != std::string::npos);
    CHECK(all.find("it is also for reason fabric-link, fabric-switch, fabric-errors, link-slow, "
                   "subnet-manager") != std::string::npos);
    CHECK(all.find(", which is no node") != std::string::npos);
    const auto little = warnings_of(rule_text("little", "xid = 79", "down"));
    CHECK(little.find("p:1:1: warning: no rule is for Xid 1-78, 80-153, ") == 0);
    CHECK(little.find("that is an alert") != std::string::npos);
}

TEST_CASE("hundreds of rules are reviewed", "[fault]") { check_review_of(256); }

TEST_CASE("thousands of rules are reviewed", "[.large]") { check_review_of(4096); }

TEST_CASE("conditions in words", "[fault]") {
    const auto p = made(
        rule_text("a", "xid = [74, \"144-150\"]\nclass = \"inspect\"\ncount = 3\nwithin = \"90m\"", "log") +
        rest);
    CHECK(conditions_of(p.rules()[0]) == "class = inspect, xid = 74 or 144-150; 3 times within 90m");
    CHECK(conditions_of(p.rules()[1]) == "always");
}

TEST_CASE("a trial judges as the controller does", "[fault]") {
    policy_trial trial(shipped_policy(), 30'000);
    trial.take(event_of(gpu_line(3, "45, pid=1"), 1'000'000));
    trial.take(event_of(gpu_line(3, "149, x"), 1'000'100));
    trial.take(event_of(gpu_line(3, "13, x"), 1'000'150));
    trial.take(event_of(gpu_line(3, "154, from 0x0 (None) to 0x2 (Node Reboot Required)"), 1'000'200));
    trial.take(event_of(gpu_line(3, "13, x"), 1'090'000));
    REQUIRE(trial.incidents().all().size() == 2);
    std::string steps;
    for (const auto& [at, what] : trial.judgements(1))
        steps += fmt::format("{} {} {};", at, what.rule, name_of(what.step));
    CHECK(steps == "1000000 harmless log;1000100 inspect alert;1000200 restart down;");
    CHECK(trial.judgements(2).back().what.rule == "application");
}

TEST_CASE("times of logs are numbers, or are said not to be", "[fault]") {
    CHECK(log_time_ms("123.456789") == 123'456);
    CHECK(log_time_ms("5.7") == 5'700);
    CHECK(log_time_ms("123456789") == 123'456);
    CHECK(log_time_ms("1970-01-01T00:00:02.5Z") == 2'500);
    CHECK(log_time_ms("1970-01-01T01:00:02.123456+01:00") == 2'123);
    CHECK(log_time_ms("1969-12-31T19:00:02,123-0500") == 2'123);
    CHECK(log_time_ms("1970-01-01 00:00:02") == 2'000);
    CHECK(*log_time_ms("Nov 23 01:02:04") - *log_time_ms("Nov 23 01:02:03") == 1000);
    CHECK(log_time_ms("Nov  3 01:02:04"));
    for (const char* none : {"", ".", "yesterday", "1970-01-01T00:00:02+", "1970-01-01T00:00:02+xx", "Nov 23",
                             "99999999999999999999", "1.2.3", "Nov 23 01:02:04 x", "18014398509481984.1"}) {
        CAPTURE(none);
        CHECK_FALSE(log_time_ms(none));
    }
}

}  // namespace test_policy_review
