// SPDX-License-Identifier: BSD-3-Clause
//
// The subnet manager's log, on logs of a real opensm.
#include <fstream>
#include <map>

#include <catch2/catch.hpp>

#include "fault/sources/opensm_log.hpp"
#include "test/built.hpp"

namespace test_opensm {

using namespace banyan::fault;

namespace {

std::map<opensm_kind, int> count(const std::string& file) {
    std::ifstream in(banyan::testing::fixture("fault/") + file);
    REQUIRE(in.good());
    opensm_parser parser;
    std::map<opensm_kind, int> out;
    for (std::string line; std::getline(in, line);)
        if (const auto e = parser.line(line)) ++out[e->kind];
    return out;
}

}  // namespace

TEST_CASE("a real log gives exactly its changes", "[fault]") {
    auto faults = count("opensm-faults.log");
    CHECK(faults[opensm_kind::link_trap] == 42);
    CHECK(faults[opensm_kind::removed] == 19);
    CHECK(faults[opensm_kind::discovered] == 0);
    CHECK(faults[opensm_kind::subnet_up] == 5);
    auto raw = count("opensm-raw-example.log");
    CHECK(raw[opensm_kind::link_trap] == 42);
    CHECK(raw[opensm_kind::removed] == 9);
    CHECK(raw[opensm_kind::subnet_up] == 2);
}

TEST_CASE("names are taken to the end of the line", "[fault]") {
    opensm_parser parser;
    auto e = parser.line(
        "Nov 21 02:06:22 123456 [45B226C0] 0x02 -> drop_mgr_remove_port: Removed port with "
        "GUID:0xa088c20300003011 LID range "
        "[24, 24] of node:MF0;spine-01:MQM9790/U1");
    REQUIRE(e);
    CHECK(e->kind == opensm_kind::removed);
    CHECK(e->guid == 0xa088c20300003011);
    CHECK(e->node == "MF0;spine-01:MQM9790/U1");
    e = parser.line(
        "Nov  1 02:06:22 123456 [45B226C0] 0x02 -> state_mgr_report_new_ports: Discovered new port with "
        "GUID:0xa1 LID range "
        "[24,24] of node: gpu0003 mlx5_1");
    REQUIRE(e);
    CHECK(e->kind == opensm_kind::discovered);
    CHECK(e->node == "gpu0003 mlx5_1");
}

TEST_CASE("a record with a continuation line is one event", "[fault]") {
    opensm_parser parser;
    CHECK_FALSE(parser.line(
        "Nov 21 02:06:22 1 [A] 0x04 -> pi_rcv_process_switch_ext_port: Unlinking local node 0xab, port 5"));
    const auto e = parser.line("\t\t\t\tand remote node 0xcd, port 33");
    REQUIRE(e);
    CHECK(e->kind == opensm_kind::unlinked);
    CHECK(e->guid == 0xab);
    CHECK(e->port == 5);
    CHECK(e->remote_guid == 0xcd);
    CHECK(e->remote_port == 33);
    CHECK_FALSE(parser.line("\t\t\t\tand remote node 0xcd, port 33"));
}

TEST_CASE("other traps and garbage are no change", "[fault]") {
    opensm_parser parser;
    CHECK_FALSE(
        parser.line("Nov 21 02:06:22 1 [A] 0x01 -> log_trap_info: Received Generic Notice type:1 num:144 (x) "
                    "from LID:1"));
    CHECK_FALSE(parser.line(
        "Nov 21 02:06:22 1 [A] 0x01 -> fabric_validate_topology: ERR AB0B: Different number of ports"));
    for (const char* line : {"", "x", "Nov", "\t", "Nov 21 02:06:22 1 [A] 0x01", "-> SUBNET UP",
                             "\xff\xff\xff\xff\xff\xff\xff\xff"})
        CHECK_FALSE(parser.line(line));
}

TEST_CASE("the manager's own words, and nobody else's", "[fault]") {
    const std::string head = "Nov 23 05:37:03 592620 [DF24D740] 0x80 -> ";
    opensm_parser parser;
    REQUIRE(parser.line(head + "Exiting SM"));
    CHECK(parser.line(head + "Exiting SM")->kind == opensm_kind::manager_ends);
    for (const char* state : {"MASTER", "STANDBY", "DISCOVERING"})
        CHECK(parser.line(head + "Entering " + state + " state")->kind == opensm_kind::manager_state);
    for (const char* no : {"Exiting SM ", "x: Exiting SM", "Entering MASTER state of it", "Entering"})
        CHECK_FALSE(parser.line(head + no));
}

}  // namespace test_opensm
