// SPDX-License-Identifier: BSD-3-Clause
//
// What accuses applications: a user can have any number of those incidents, and they neither push out others
// nor stay for ever.
#include <catch2/catch.hpp>

#include "fault/incident/engine.hpp"
#include "fault/incident/job_rules.hpp"
#include "fault/policy/policy_file.hpp"
#include "test/unit/fault/lines.hpp"

namespace test_application_incidents {

using namespace banyan::fault;
using namespace banyan::fault::testing;

namespace {

constexpr std::int64_t begun = 1'000'000, apart = 31'000, hour = 3'600'000;

class applications {
  public:
    engine e;
    std::int64_t now = begun;

    /// Another incident, about which all was done.
    incident& hear(const std::string& line, const std::string& node = "n03", std::uint32_t job = 0) {
        auto told = event_of(line, now += apart, ++position_, node);
        told.job = job;
        auto& out = *e.find(e.absorb(told, now).number);
        out.state = incident_state::done;
        return out;
    }
    incident& crash(const std::string& node, std::uint32_t job = 0) {
        auto& out = hear(gpu_line(1, "13, pid=1, name=p, Graphics Exception"), node, job);
        out.decided = static_cast<std::uint8_t>(step_kind::none);
        return out;
    }

  private:
    std::uint64_t position_ = 0;
};

const std::string double_bit = gpu_line(3, "48, pid=1, name=p, DBE");

}  // namespace

TEST_CASE("applications that fail push out no incident of the hardware", "[fault]") {
    applications a;
    auto& cancelled = a.hear(double_bit);
    cancelled.cancelled_by = "root";
    const auto ruled = cancelled.number, alert = a.hear(gpu_line(3, "122, SPI PMU RPC"), "n07").number;
    for (int n = 0; n < 2'100; ++n) a.crash("n" + std::to_string(10 + n % 16));
    REQUIRE(a.e.find(ruled));
    CHECK(a.e.find(ruled)->cancelled_by == "root");
    CHECK(a.e.find(alert));
    CHECK(a.e.all().size() == engine::max_of_applications + 2);
    CHECK(a.hear(double_bit).number == ruled);
}

TEST_CASE("whatever makes room, what somebody ruled on stays until it is closed", "[fault]") {
    applications a;
    const bool hardware = GENERATE(true, false);
    const auto another = [&](int n) -> incident& {
        const auto node = "n" + std::to_string(n);
        return hardware ? a.hear(gpu_line(3, "122, SPI PMU RPC"), node) : a.crash(node);
    };
    auto& ruled = another(0);
    const auto number = ruled.number;
    ruled.cancelled_by = "root";
    for (int n = 1; n < 2'100; ++n) another(n);
    REQUIRE(a.e.find(number));
    a.e.find(number)->closed_ms = a.now;
    another(3'000);
    CHECK_FALSE(a.e.find(number));
}

TEST_CASE("an error whose job is not known makes room before those that rules count", "[fault]") {
    applications a;
    const auto rules = shipped_policy();
    (void)a.crash("n03", 1);
    (void)a.crash("n03", 2);
    for (int n = 0; n < 2'100; ++n) a.crash("n" + std::to_string(10 + n % 16));
    const auto& third = a.crash("n03", 3);
    CHECK(rules.decide(third, a.e.all()).rule == "application-again");
    // A memory error is contained to an application, and is none of its making.
    applications b;
    const auto contained = b.hear(gpu_line(1, "94, pid=1, name=p, Contained")).number;
    for (int n = 0; n < 2'100; ++n) b.crash("n" + std::to_string(10 + n % 16));
    CHECK(b.e.find(contained));
}

TEST_CASE("what became an application's of a job's end is bounded as well", "[fault]") {
    applications a;
    for (std::uint32_t job = 1; job < 2'600; ++job) {
        incident end;
        end.reason = job_end_reason;
        end.state = incident_state::done;
        auto& opened = a.e.open(end, begun);
        opened.reason = "gpu-app";
    }
    CHECK(a.e.all().size() <= engine::max_of_applications + 1);
}

TEST_CASE("an application's error is closed after a day of quiet, and counts still", "[fault]") {
    applications a;
    const auto first = a.crash("n03", 1).number, second = a.crash("n03", 2).number;
    const auto ruled = a.crash("n04", 3).number, alert = a.crash("n05", 4).number,
               hardware = a.hear(double_bit, "n06").number;
    a.e.find(ruled)->cancelled_by = "root";
    a.e.find(alert)->decided = static_cast<std::uint8_t>(step_kind::alert);
    CHECK(a.e.close_quiet(a.now + 23 * hour).empty());
    a.now += 25 * hour;
    CHECK(a.e.close_quiet(a.now) == std::vector<std::uint64_t>{first, second});
    CHECK(a.e.find(first)->closed_by == quiet_job_closes);
    for (const auto number : {ruled, alert, hardware}) CHECK(a.e.find(number)->closed_ms == 0);
    // A site's rule may look further back than a day.
    const auto site = [](const std::string& counts) {
        return *parse_policy("site", "[[rule]]\nname = \"week\"\nxid = 13\n" + counts +
                                         "\nwithin = \"168h\"\naction = \"alert\"\n"
                                         "[[rule]]\nname = \"rest\"\naction = \"log\"\n")
                    .rules;
    };
    const auto& third = a.crash("n03", 5);
    CHECK(third.number > hardware);
    CHECK(site("jobs = 3").decide(third, a.e.all()).rule == "week");
    CHECK(site("count = 3").decide(third, a.e.all()).rule == "week");
    // What somebody closed he has seen to.
    a.e.find(first)->closed_by = "root";
    CHECK(site("jobs = 3").decide(third, a.e.all()).rule == "rest");
    CHECK(site("count = 3").decide(third, a.e.all()).rule == "rest");
}

}  // namespace test_application_incidents
