// SPDX-License-Identifier: BSD-3-Clause
#include <banyan/topo/reader.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "fixtures.hpp"

namespace test_reader {

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

const char* const one_link = R"(#
# Topology file: generated on Sat Nov 21 02:03:10 2026
#

vendid=0x2c9
devid=0xd2f2
sysimgguid=0xfc6a
switchguid=0xfc6a(fc6a)
Switch	64 "S-000000000000fc6a"		# "MF0;leaf "A":MQM9790/U1" enhanced port 0 lid 3 lmc 0
[1]	"H-000000000000a088"[1](a089) 		# "n01 mlx5_0" lid 121 4xNDR

vendid=0x2c9
devid=0x1021
caguid=0xa088
Ca	1 "H-000000000000a088"		# "n01 mlx5_0"
[1](a089) 	"S-000000000000fc6a"[1]		# lid 121 lmc 0 "MF0;leaf "A":MQM9790/U1" lid 3 4xNDR
)";

std::string replaced(std::string text, const std::string& what, const std::string& with) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
        text.replace(at, what.size(), with);
    return text;
}

}  // namespace

TEST_CASE("a dump of two nodes, with quotes in a name", "[topo]") {
    const auto d = read_ibnetdiscover(one_link).value();
    CHECK(d.complaints.empty());
    REQUIRE(d.nodes.size() == 2);
    CHECK(d.nodes[0].name == "MF0;leaf \"A\":MQM9790/U1");
    CHECK(d.nodes[0].lid == 3);
    CHECK(d.nodes[0].ports == 64);
    CHECK(d.nodes[0].line == 9);
    CHECK(d.nodes[1].system == 0);
    REQUIRE(d.ports_of(d.nodes[0]).size() == 1);
    CHECK(d.nodes[1].lid == 121);
    CHECK(d.ports_of(d.nodes[0])[0].peer == 0xa088);
    CHECK(d.ports_of(d.nodes[0])[0].rate == link_rate{4, 1000});
    CHECK(d.ports_of(d.nodes[1])[0].rate == link_rate{4, 1000});
    CHECK(d.ports_of(d.nodes[1])[0].peer_port == 1);
}

TEST_CASE("a name has nothing that a terminal obeys", "[topo]") {
    const std::string text = one_link;
    const auto d = read_ibnetdiscover(replaced(text, "n01",
                                               "n\x1b[2J\x7f\xc2\x9b"
                                               "1\xc3\xa4"))
                       .value();
    CHECK(d.complaints.empty());
    CHECK(d.nodes[1].name == "n?[2J???1\xc3\xa4 mlx5_0");
    // The checksum is that of the file.
    CHECK(d.crc != read_ibnetdiscover(replaced(text, "n01", "n?[2J???1\xc3\xa4")).value().crc);
}

TEST_CASE("forms that mean the same", "[topo]") {
    const auto plain = read_ibnetdiscover(one_link).value();
    const auto same = [&](const std::string& text) {
        const auto d = read_ibnetdiscover(text).value();
        REQUIRE(d.nodes.size() == 2);
        CHECK(d.complaints.empty());
        CHECK(d.nodes[0].name == plain.nodes[0].name);
        CHECK(d.ports_of(d.nodes[0])[0].rate == plain.ports_of(plain.nodes[0])[0].rate);
        CHECK(d.ports_of(d.nodes[1])[0].peer == plain.ports_of(plain.nodes[1])[0].peer);
    };
    SECTION("CRLF") { same(replaced(one_link, "\n", "\r\n")); }
    SECTION("tabs turned to blanks") { same(replaced(one_link, "\t", "    ")); }
    SECTION("error lines before it") { same(std::string("ibwarn: [1] sim_connect: attached\n") + one_link); }
    SECTION("external ports and chassis") {
        same(replaced(replaced(one_link, "[1]\t\"H-", "[1][ext 3]\t\"H-"), "sysimgguid=0xfc6a",
                      "sysimgguid=0xfc6a\t\t# Chassis 1 slot 2"));
    }
    SECTION("full speeds") { same(replaced(one_link, "4xNDR", "4xNDR s=16 w=2 v=1")); }
}

TEST_CASE("unknown speeds are unknown, not an error", "[topo]") {
    const auto d = read_ibnetdiscover(replaced(one_link, "4xNDR", "4x???")).value();
    CHECK(d.ports_of(d.nodes[0])[0].rate == link_rate{4, 0});
    CHECK(d.complaints.empty());
}

TEST_CASE("a broken line is reported with its place, the rest is read", "[topo]") {
    const auto d =
        read_ibnetdiscover(replaced(one_link, "[1]\t\"H-000000000000a088\"", "[1]\t\"Hx00000000a088\""))
            .value();
    REQUIRE(d.complaints.size() == 1);
    CHECK(d.complaints[0].line == 10);
    CHECK(d.complaints[0].column > 1);
    CHECK(d.nodes.size() == 2);
    CHECK(d.nodes[1].port_count == 1);
}

TEST_CASE("real dumps are read without a complaint", "[topo]") {
    for (const auto* name :
         {"ibnetdiscover.txt", "ibnetdiscover-after-faults.txt", "ibnetdiscover-3level-sharp.txt",
          "ibnetdiscover-fattree3.txt", "ibnetdiscover-ndr-ibsim0.12.txt"}) {
        INFO(name);
        CHECK(read_ibnetdiscover(fixture(name)).value().complaints.empty());
    }
}

TEST_CASE("what is no dump gets a reason and a hint", "[topo]") {
    const auto refused = [](const std::string& text) {
        const auto d = read_ibnetdiscover(text);
        REQUIRE_FALSE(d);
        CHECK_FALSE(d.error().hint.empty());
        return d.error().what;
    };
    CHECK(refused("").find("empty") != std::string::npos);
    CHECK(refused(fixture("perfquery.txt")).find("perfquery") != std::string::npos);
    CHECK(refused(fixture("ibqueryerrors.txt")).find("ibqueryerrors") != std::string::npos);
    CHECK(refused(fixture("dump_lfts.txt")).find("dump_lfts") != std::string::npos);
    CHECK(refused("<html><body>404</body></html>\n").find("web page") != std::string::npos);
    CHECK(refused(std::string("\x7f"
                              "ELF\0\0\0",
                              8))
              .find("binary") != std::string::npos);
    CHECK(refused("hello\n").find("no node") != std::string::npos);
    // Of other networks: named, and never taken for a fabric.
    for (const auto& [text, name] : std::vector<std::pair<std::string, std::string>>{
             {"{\"lldp\":{\"interface\":{}}}\n", "LLDP"},
             {"-----\nLLDP neighbors:\n-----\nInterface:    eth2, via: LLDP\n", "LLDP"},
             {"LocalPort    RemoteDevice    RemotePortID\n-----  -----  -----\nEthernet0  n1  eth2\n",
              "LLDP"},
             {"0x00117501020c4d23;0;SW;Edge02;Active;LinkUp;;;;;\n", "Omni-Path"},
             {"Fabric 0:0 Information:\nNumber of HFIs: 84\n", "opafabricinfo"},
             {"Rate NodeGUID           Port Type Name\n100g 0x1  1 XX n1 hfi1_0\n", "an end of a link"},
             {"[{\"source_guid\": \"1\", \"source_port\": \"1\"}]\n", "source_port_dname"},
             {"NodeName=n[1-4] CPUs=8\n", "slurm.conf"}}) {
        INFO(text);
        CHECK(refused(text).find(name) != std::string::npos);
    }
}

TEST_CASE("the port list of -p gives the same links", "[topo]") {
    const auto records = model_of("ibnetdiscover-after-faults.txt");
    const auto ports = model_of("ibnetdiscover-p-after-faults.txt");
    CHECK(ports.links.size() == records.links.size());
    CHECK(ports.switches.size() == records.switches.size());
    CHECK(ports.hosts.size() == records.hosts.size());
    REQUIRE(ports.leaf_groups.size() == records.leaf_groups.size());
    CHECK(ports.leaf_groups[0].leaves.size() == records.leaf_groups[0].leaves.size());
    CHECK(ports.defects.size() == records.defects.size());
}

TEST_CASE("lists and differences of ibnetdiscover are told from its topology", "[topo]") {
    const auto list =
        read_ibnetdiscover("Ca\t : 0xa088c20300001000 ports 1 devid 0x1021 vendid 0x2c9 \"n01 mlx5_0\"\n");
    REQUIRE_FALSE(list);
    CHECK(list.error().what.find("-l") != std::string::npos);
    const auto changed = read_ibnetdiscover(replaced(one_link, "[1]\t\"H-", "< [1]\t\"H-"));
    REQUIRE_FALSE(changed);
    CHECK(changed.error().what.find("--diff") != std::string::npos);
}

TEST_CASE("chassis headings of -g are no broken lines", "[topo]") {
    const auto d = read_ibnetdiscover(std::string("Chassis 1 (guid 0xfc6a)\n# Spine Nodes\n") + one_link +
                                      "\nNon-Chassis Nodes\n")
                       .value();
    CHECK(d.complaints.empty());
    CHECK(d.nodes.size() == 2);
}

TEST_CASE("a node-name map", "[topo]") {
    const auto names =
        read_name_map("# ours\n0xa088 \"n07 mlx5_3\"  # moved\n\n0x00000000fc6a \"leaf \"B\"\"\n").value();
    CHECK(names.descriptions.at(0xa088) == "n07 mlx5_3");
    CHECK(names.descriptions.at(0xfc6a) == "leaf \"B\"");
    CHECK(read_name_map("0xa088 n07\n").error().what.find("line 1") != std::string::npos);
    build_options options;
    options.names = names;
    const auto f = build_fabric(read_ibnetdiscover(one_link).value(), options);
    CHECK(find_host(f, "n07") != none);
    CHECK(f.switches[0].name == "leaf \"B\"");
}

TEST_CASE("hosts go by the names of their nodes, whichever word of a line is the host's", "[topo]") {
    const auto dump = read_ibnetdiscover(fixture("ibnetdiscover.txt")).value();
    const auto host_first = GENERATE(true, false);
    std::string text = "# pods\nNAME NODE\n";
    for (int i = 1; i <= 12; ++i)
        text += host_first ? fmt::format("gpu{:04} pod-{}\n", i, 20 - i)
                           : fmt::format("pod-{}\tgpu{:04}\n", 20 - i, i);
    build_options options;
    options.names = read_name_map(text).value();
    const auto f = build_fabric(dump, options);
    CHECK(f.hosts.size() == 16);
    CHECK(f.defects.empty());
    CHECK(find_host(f, "pod-19") != none);
    CHECK(find_host(f, "gpu0001") == none);
    CHECK(find_host(f, "gpu0013") != none);  // the file does not say
    CHECK(f.hosts[find_host(f, "pod-19")].hcas.size() == 8);
    CHECK_FALSE(read_name_map("gpu0001 pod-1 extra\n"));
    CHECK_FALSE(read_name_map("gpu0001\n"));
    // Two machines would become one host.
    CHECK(read_name_map("gpu0001 pod-1\ngpu0002 pod-1\n").error().what.find("line 2") != std::string::npos);
    CHECK_FALSE(read_name_map("pod-1 gpu0001\npod-2 gpu0001\n"));
}

TEST_CASE("a dump that was cut in the middle is refused", "[topo]") {
    const auto whole = fixture("ibnetdiscover.txt");
    for (const auto share : {2, 3, 4, 7}) {
        const auto cut = whole.substr(0, whole.size() / static_cast<std::size_t>(share));
        INFO(share);
        const auto d = read_ibnetdiscover(cut);
        REQUIRE_FALSE(d);
        CHECK(d.error().what.find("cut after line") != std::string::npos);
    }
    // Cut at a line's end too, where only the missing records tell.
    const auto at = whole.find('\n', whole.size() / 2);
    CHECK_FALSE(read_ibnetdiscover(whole.substr(0, at + 1)));
}

}  // namespace test_reader
