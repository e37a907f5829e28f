// SPDX-License-Identifier: BSD-3-Clause
//
// The alert rules that are installed speak of series that the daemons really give.
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <catch2/catch.hpp>

#include "fault/metrics/metrics.hpp"
#include "test/built.hpp"
#include "test/unit/fault/metrics_page.hpp"

namespace test_metric_names {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;

TEST_CASE("every series of the alert rules is one of the daemon's", "[fault]") {
    metrics m;
    m.count_action("node_drain", false);
    m.count_incident("gpu-reset", 0.1);
    m.set_reasons({{"gpu-reset", 2}, {"disk", 1}}, 3);
    m.set_reasons({{"disk", 1}}, 3);
    m.set_breaker(true);
    m.set_blind("hcas", 1);
    const auto where = m.serve("127.0.0.1:0");
    REQUIRE(where);
    const auto shown = page(*where);
    CHECK(shown.find("banyan_fault_incidents_by_reason{reason=\"gpu-reset\"} 0\n") != std::string::npos);
    CHECK(shown.find("banyan_fault_state{state=\"held_incidents\"} 3\n") != std::string::npos);
    CHECK(shown.find("banyan_fault_state{state=\"breaker_open\"} 1\n") != std::string::npos);
    std::ifstream file(banyan::testing::source("etc/prometheus/banyan-fault.rules.yml"));
    std::stringstream text;
    text << file.rdbuf();
    const auto rules = text.str();
    const std::regex name("banyan_fault_[a-z_]+");
    std::set<std::string> named;
    for (auto it = std::sregex_iterator(rules.begin(), rules.end(), name); it != std::sregex_iterator(); ++it)
        named.insert(it->str());
    CHECK(named.size() > 5);
    for (const auto& one : named) {
        CAPTURE(one);
        const bool there = shown.find("\n" + one + "{") != std::string::npos ||
                           shown.find("\n" + one + " ") != std::string::npos;
        CHECK(there);
    }
    const std::regex state("state=\"([a-z_]+)\"");
    for (auto it = std::sregex_iterator(rules.begin(), rules.end(), state); it != std::sregex_iterator();
         ++it)
        CHECK(shown.find(it->str()) != std::string::npos);
    // Every reason that a rule names has a page.
    const std::regex pages("runbook: ([a-z][a-z0-9-]+)");
    for (auto it = std::sregex_iterator(rules.begin(), rules.end(), pages); it != std::sregex_iterator();
         ++it)
        CHECK(std::filesystem::exists(banyan::testing::source("docs/runbook/") + (*it)[1].str() + ".md"));
}

}  // namespace test_metric_names
