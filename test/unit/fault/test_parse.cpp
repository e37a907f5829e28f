// SPDX-License-Identifier: BSD-3-Clause
//
// Any log into events: every format, guessed and told, and none where there is none.
#include <map>
#include <set>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "fault/parse/any_log.hpp"
#include "test/fault_lines.hpp"

namespace test_parse {

using namespace banyan::fault;

namespace {

std::vector<reading> read(any_log& log, const std::string& line) {
    std::vector<reading> out;
    log.line(line, [&](const reading& r) { out.push_back(r); });
    return out;
}

std::vector<reading> read(log_format format, const std::string& line) {
    any_log log(format);
    return read(log, line);
}

}  // namespace

TEST_CASE("every fault of every format is one event, and the right one", "[fault]") {
    testing::fault_lines draw(7);
    std::size_t wrong = 0;
    std::set<std::string> kinds;
    constexpr std::size_t lines = 100'000;
    for (std::size_t n = 0; n < lines; ++n) {
        const auto one = draw.fault(n);
        const auto got = read(one.format, one.line);
        const bool right = got.size() == 1 && got[0].kind == one.kind &&
                           (!one.code || got[0].code == one.code) &&
                           (one.bdf.empty() || got[0].device == one.bdf);
        if (!right && ++wrong < 10) {
            CAPTURE(one.line, one.kind, one.bdf, got.size(), got.empty() ? "" : json_line(got[0]));
            CHECK(right);
        }
        kinds.insert(one.kind);
    }
    CHECK(wrong == 0);
    CHECK(kinds.size() > 50);
}

TEST_CASE("the format is guessed where it can be", "[fault]") {
    testing::fault_lines draw(8);
    for (std::size_t n = 0; n < 4'000; ++n) {
        const auto one = draw.fault(n);
        any_log log(log_format::guess);
        const auto got = read(log, one.line);
        CAPTURE(one.line);
        if (one.format == log_format::syslog) {  // every user can write such a line: it must be told
            CHECK(got.empty());
            CHECK(log.seen().refused == 1);
        } else {
            CHECK(got.size() == 1);
            CHECK(log.format() == one.format);
        }
    }
}

TEST_CASE("ordinary lines and lines that users provoke give no event", "[fault][hostile]") {
    testing::fault_lines draw(9);
    std::map<log_format, any_log> logs;
    std::size_t events = 0;
    const auto feed = [&](const testing::drawn& one) {
        auto& log = logs.try_emplace(one.format, one.format).first->second;
        const auto got = read(log, one.line);
        events += got.size();
        if (!got.empty()) {
            CAPTURE(one.line, json_line(got[0]));
            CHECK(got.empty());
        }
    };
    for (std::size_t n = 0; n < 100'000; ++n) feed(draw.ordinary(n));
    for (std::size_t n = 0; n < 10'000; ++n) feed(draw.provoked(n));
    CHECK(events == 0);
}

TEST_CASE("a file has one format", "[fault]") {
    any_log job(log_format::nccl);
    // What a job prints is no other log's line.
    CHECK(read(job, "[    1.000000] NVRM: Xid (PCI:0000:5d:00): 79, x").empty());
    CHECK(read(job, "Jun 17 17:21:28 1 [AB] 0x02 -> Removed port with GUID:0x1 LID range [1, 1] of node:x")
              .empty());
    any_log guessed(log_format::guess);
    CHECK(read(guessed, "gpu7:1:2 [0] NCCL INFO Bootstrap : Using eth0").empty());
    CHECK(guessed.format() == log_format::nccl);
    CHECK(read(guessed, "[    1.000000] NVRM: Xid (PCI:0000:5d:00): 79, x").empty());
    CHECK(guessed.seen().foreign == 1);
}

TEST_CASE("one file with the lines of many hosts", "[fault]") {
    any_log log(log_format::syslog);
    const auto line = [&](const std::string& host, const std::string& text) {
        return read(log, "Nov 21 02:00:01 " + host + " kernel: [    1.000001] " + text);
    };
    // A message in parts of one host is not another's, and equal stamps of two hosts are two records.
    CHECK(line("a", "NVRM: The NVIDIA GPU 0000:9a:00.0").empty());
    CHECK(line("b", "NVRM: (PCI ID: 10de:2330) installed in this system has").empty());
    CHECK(line("b", "NVRM: fallen off the bus and is not responding to commands.").empty());
    CHECK(line("c", "something else").empty());
    const auto got = line("d", "NVRM: Xid (PCI:0000:5d:00): 79, x");
    REQUIRE(got.size() == 1);
    CHECK(got[0].node == "d");
    CHECK(got[0].time == "Nov 21 02:00:01");
    for (int n = 0; n < 70'000; ++n) line("host" + std::to_string(n), "x");  // memory stays bounded
}

TEST_CASE("an event is shown with every key", "[fault]") {
    const auto got =
        read(log_format::kmsg, "[    1.000001] NVRM: Xid (PCI:0000:5d:00): 79, pid=1, name=\"\x1b[2J, x");
    REQUIRE(got.size() == 1);
    const auto shown = nlohmann::json::parse(json_line(got[0]));
    for (const auto* key : {"source", "time", "node", "device", "kind", "code", "severity", "action", "text"})
        CHECK(shown.contains(key));
    CHECK(shown.size() == 9);
    CHECK(shown["code"] == 79);
    CHECK(shown["node"].is_null());
    CHECK(shown["action"] == "node-out");
    CHECK(json_line(got[0]).find('\x1b') == std::string::npos);
}

TEST_CASE("lines that are no event in the fabric's logs", "[fault]") {
    for (const auto* line :
         {"Jun 17 17:21:28 1 [AB] 0x02 -> osm_pi_rcv_process: Switch 0x1 s port 3 changed state from DOWN to "
          "DOWN",
          "Jun 17 17:21:28 1 [AB] 0x02 -> osm_pi_rcv_process: Switch 0x1 s port 3 changed state from DOWN to "
          "INIT",
          "Jun 17 17:21:28 1 [AB] 0x02 -> x: node \"Switch 0x1 s port 3 changed state from ACTIVE to DOWN\""})
        CHECK(read(log_format::opensm, line).empty());
    // A host's administrator names it as he likes: the port is the last one.
    const auto got =
        read(log_format::opensm,
             "Jun 17 17:21:28 1 [AB] 0x02 -> osm_pi_rcv_process: Switch 0x1 x port 9 changed state from "
             "ACTIVE to DOWN port 3 changed state from ACTIVE to DOWN");
    REQUIRE(got.size() == 1);
    CHECK(got[0].device == "0x0000000000000001 port 3");
    for (const auto* line :
         {"2023-12-20 07:46:24.442 [12] [64] INFO [Fabric] IBPort [Default / Switch: T3]: GID out of service",
          "2023-12-20 07:46:24.442 [12] [604] INFO [Maintenance] Grid [Grid]: Fabric analysis report "
          "succeeded",
          "2023-12-20 07:46:24.442 [12] [329] WARNING [Link"})
        CHECK(read(log_format::ufm, line).empty());
}

}  // namespace test_parse
