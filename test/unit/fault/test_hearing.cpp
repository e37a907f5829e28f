// SPDX-License-Identifier: BSD-3-Clause
//
// Who hears of an incident, and how often.
#include <catch2/catch.hpp>

#include "fault/controller/node_incidents.hpp"
#include "fault/policy/policy_file.hpp"
#include "fault/sources/log_line.hpp"
#include "test/scratch_path.hpp"
#include "test/unit/fault/domain_bench.hpp"
#include "test/unit/fault/heard.hpp"

namespace test_hearing {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

policy silence_is(const std::string& action) {
    auto read = parse_policy("site.toml", "[[rule]]\nname = \"by-" + action +
                                              "\"\nkind = \"silence\"\naction = \"" + action + "\"\n");
    REQUIRE(read.rules);
    return std::move(*read.rules);
}

class book {
  public:
    asio::io_context io;
    std::shared_ptr<metrics> figures = std::make_shared<metrics>();
    records known{io, std::chrono::seconds(30), figures};
    policy rules = silence_is("ignore");
    hearing desk{known, rules, figures};
    int acted = 0;
    std::string boot{};
    node_incidents of_nodes{known,
                            {.boot_of = [this](const std::string&) { return boot; },
                             .nvlink_domain_of = [](const std::string&) { return one_domain; },
                             .hear =
                                 [this](std::uint64_t number, change what) {
                                     acted += desk.hear(*known.incidents().find(number), what) == heard::act;
                                 }}};
    book() {
        std::filesystem::create_directories(dir_);
        limiter limits{policy_limits{}};
        REQUIRE(known.open((dir_ / "history.db").string(), limits));
    }
    ~book() {
        known.finish();
        std::filesystem::remove_all(dir_);
    }
    const incident& one() { return known.incidents().all().begin()->second; }

  private:
    std::filesystem::path dir_ = banyan::testing::scratch_path("hearing");
};

}  // namespace

TEST_CASE("a silent node is heard of when the rules do not ignore it any more, once", "[fault]") {
    ears log;
    book b;
    b.of_nodes.silent("n1", "no answer");
    b.of_nodes.silent("n1", "no answer");
    CHECK(is_ignored(b.one()));
    CHECK(b.one().state == incident_state::done);
    CHECK(b.acted == 0);
    CHECK(log.times("incident ") == 0);
    b.rules = silence_is(GENERATE("log", "alert", "down"));
    b.of_nodes.silent("n1", "no answer");
    CHECK(b.one().rule == b.rules.rules().front().name);
    CHECK(b.acted == 1);
    CHECK(log.times("incident f00001 fatal: n1 does not answer") == 1);
    b.of_nodes.silent("n1", "no answer");
    CHECK(b.known.incidents().all().size() == 1);
    CHECK(b.acted == 1);
    CHECK(log.times("incident f00001") == 1);
    CHECK(incidents_counted(*b.figures, "node-silent") == 1);
}

TEST_CASE("a link's incident is open again when the node that explained it was never down", "[fault]") {
    book b;
    auto told = event_of(gpu_line(3, fell_149), clock::wall_ms(), 1, "n2");
    told.nvlink_domain = one_domain;
    REQUIRE(b.known.incidents().absorb(told, told.line_ms).number == 1);
    b.of_nodes.silent("n1", "no answer");
    REQUIRE(was_folded(b.one()));
    b.rules = silence_is("log");
    SECTION("it was down") {
        b.boot = "the next";
        b.of_nodes.back("n1");
        CHECK(was_folded(b.one()));
    }
    SECTION("it was not") {
        b.of_nodes.back("n1");
        CHECK(b.one().closed_ms == 0);
        CHECK(b.one().closed_by.empty());
        CHECK(b.acted == 1);
    }
    CHECK(b.known.incidents().find(2)->closed_by == "the node: its agent is back");
}

TEST_CASE("a consequence is noted, and looked into where a rule asks for more", "[fault]") {
    book b;
    incident i;
    i.reason = std::string(silent_reason);
    auto& made = b.known.incidents().open(std::move(i), 1);
    SECTION("it does not") { b.rules = silence_is("log"); }
    SECTION("it does") { b.rules = silence_is("drain"); }
    const bool more = b.rules.rules().front().step > step_kind::none;
    CHECK(b.desk.hear(made, change::echo) == (more ? heard::act : heard::noted));
    CHECK(b.desk.hear(made, change::again) == heard::noted);
    CHECK(b.desk.hear(made, change::worse) == heard::act);
}

}  // namespace test_hearing
