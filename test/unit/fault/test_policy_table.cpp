// SPDX-License-Identifier: BSD-3-Clause
//
// What the shipped rules decide, for every reason, kind of culprit, kind of line, weight and severity that an
// incident can have, impossible ones included: as it was before the rules became a file.
#include <array>
#include <fstream>
#include <map>
#include <sstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "fault/event.hpp"
#include "fault/policy/policy_file.hpp"
#include "test/built.hpp"

namespace test_policy_table {

using namespace banyan::fault;

namespace {

constexpr std::array reasons{"disk",        "fabric-link", "fabric-switch", "file-system", "gpu-alert",
                             "gpu-app",     "gpu-note",    "gpu-nvlink",    "gpu-reboot",  "gpu-reset",
                             "gpu-unknown", "gpu-xid-79",  "hca-alert",     "hca-health",  "host-link",
                             "host-lost",   "job-memory",  "kernel",        "memory",      "node-silent",
                             "node-stuck",  "nvswitch",    "pcie",          "of-tomorrow", ""};
constexpr std::array kinds{object_kind::gpu, object_kind::hca, object_kind::link, object_kind::sw,
                           object_kind::node};
constexpr std::array weights{precedence::sympathetic, precedence::note,  precedence::app,
                             precedence::alert,       precedence::reset, precedence::node_out};
constexpr std::array steps{"ignore", "none",    "notify-user", "alert", "seal",    "avoid",
                           "sweep",  "restart", "requeue",     "drain", "node_out"};

/// Letter by letter: what is decided, and in which words.
const std::map<std::string, char>& legend() {
    static const auto out = [] {
        std::ifstream file(banyan::testing::fixture("fault/policy.table"));
        std::map<std::string, char> read;
        for (std::string line; std::getline(file, line);)
            if (line.size() > 2 && line[0] != '#' && line[1] == '=') read[line.substr(2)] = line[0];
        return read;
    }();
    return out;
}

char letter(const decision& d) {
    const auto found = legend().find(fmt::format("{} {}", steps.at(static_cast<std::size_t>(d.step)), d.why));
    return found == legend().end() ? '?' : found->second;
}

/// One for all severities, or '*' where they differ.
char letter_of(incident i) {
    char out = 0;
    for (const auto s : {severity::notice, severity::warning, severity::error, severity::fatal}) {
        i.severity = s;
        const auto one = letter(shipped_policy().decide(i));
        out = out == 0 || out == one ? one : '*';
    }
    return out;
}

std::string row(const char* reason, bool part) {
    auto out = fmt::format("{:<13} {:<6}", *reason ? reason : "-", part ? "device" : "-");
    for (const auto kind : kinds) {
        out += ' ';
        for (const auto weight : weights) {
            incident i;
            i.reason = reason;
            i.object.kind = kind;
            i.object.device = part ? "mlx5_0" : "";
            i.root_precedence = static_cast<std::uint8_t>(weight);
            out += letter_of(std::move(i));
        }
    }
    return out;
}

}  // namespace

TEST_CASE("the shipped rules decide as they always did", "[fault]") {
    std::ifstream file(banyan::testing::fixture("fault/policy.table"));
    REQUIRE(file);
    std::map<std::string, std::string> expected;  // by reason and device
    for (std::string line; std::getline(file, line);)
        if (!line.empty() && line[0] != '#' && line[1] != '=') expected[line.substr(0, 20)] = line;
    REQUIRE(expected.size() == 2 * reasons.size());
    for (const auto* reason : reasons)
        for (const bool part : {false, true}) {
            const auto got = row(reason, part);
            CHECK(got == expected[got.substr(0, 20)]);
        }
}

}  // namespace test_policy_table
