// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/capacity.hpp>
#include <banyan/topo/health.hpp>
#include <banyan/topo/snapshot.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"
#include "fixtures.hpp"
#include "form_writer.hpp"
#include "topo/readers/csv.hpp"

namespace test_health {

using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

health read(const std::string& text) {
    health out;
    const auto r = read_health(text, out);
    INFO((r ? std::string() : r.error().text()));
    REQUIRE(r);
    return out;
}

std::vector<defect> of_kind(const fabric& f, const std::string& kind) {
    std::vector<defect> out;
    std::copy_if(f.defects.begin(), f.defects.end(), std::back_inserter(out),
                 [&](const defect& d) { return d.kind == kind; });
    return out;
}

std::size_t bad_links(const fabric& f) {
    return static_cast<std::size_t>(
        std::count_if(f.links.begin(), f.links.end(), [](const auto& l) { return l.bad; }));
}

std::string evidence(const fabric& f) {
    std::string out;
    for (const auto& d : of_kind(f, "bad-link")) out += d.evidence + "\n";
    return out;
}

}  // namespace

TEST_CASE("ibqueryerrors accuses links", "[topo]") {
    auto f = model_of("ibnetdiscover.txt");
    const auto taken = apply_health(f, read(fixture("ibqueryerrors-faults.txt")));
    CHECK(taken.ports == 3);
    CHECK(taken.strangers == 0);
    // An HCA's port GUID is not its node's here: it is found by its name.
    const auto bad = of_kind(f, "bad-link");
    REQUIRE(bad.size() == 2);
    CHECK(bad_links(f) == 2);
    CHECK(bad[1].evidence.find("SymbolErrorCounter 240 at MF0;leaf-01:MQM9790/U1 port 3 (more than 10: "
                               "infiniband-diags' error_thresholds)") != std::string::npos);
    CHECK(bad[1].where.size() == 2);
    // A link that often went down may be one of a host that was often started.
    REQUIRE(of_kind(f, "flapping-link").size() == 1);
    CHECK(of_kind(f, "flapping-link")[0].confidence < 0.7);
    const auto host = find_host(f, "gpu0003");
    CHECK(f.hosts[host].slow);
    CHECK_FALSE(f.hosts[find_host(f, "gpu0004")].slow);
    // The snapshot keeps it.
    const auto again = decode_snapshot(encode_snapshot(f)).value();
    CHECK(bad_links(again) == 2);
    CHECK(again.hosts[host].slow);
    // And a later look without errors takes it back.
    auto healed = again;
    apply_health(healed, read(fixture("ibqueryerrors.txt")));
    CHECK(bad_links(healed) == 0);
    CHECK(of_kind(healed, "bad-link").empty());
    CHECK_FALSE(healed.hosts[host].slow);
}

TEST_CASE("a host with a bad link comes last", "[topo]") {
    rail_fabric w(1, 8, 2, 2);
    auto f = w.model();
    health h;
    h.counters_told = true;
    h.ports.push_back({w.leaves[0][1], 0, 0, 3, "", {}, 0, 1e-6});
    apply_health(f, h);
    const auto host = find_host(f, "g0n02");
    for (std::uint32_t i = 0; i < f.hosts.size(); ++i) CHECK(f.hosts[i].slow == (i == host));
    const auto placed = place(f, all_hosts(f), make("tp=2,dp=7", 7));
    REQUIRE(placed);
    CHECK(std::find(placed->nodes.begin(), placed->nodes.end(), host) == placed->nodes.end());
}

TEST_CASE("bad uplinks make a way over the spines dearer", "[topo]") {
    rail_fabric w(2, 8, 1, 8);
    auto f = w.model();
    const auto cost = f.tier_cost[tier::spine];
    std::string csv =
        "timestamp,node_guid,port_guid,port_num,symbol_error_counter_extended,eff_ber,symbol_ber\n";
    for (unsigned port = 33; port < 37; ++port)
        csv += fmt::format("1,0x{:x},0x{:x},{},0,1e-9,1.5E-254\n", w.leaves[0][0], w.leaves[0][0], port);
    apply_health(f, read(csv));
    CHECK(bad_links(f) == 4);
    CHECK(evidence(f).find(
              "effective BER 1e-09 at leaf-0-0 port 33 (more than 1e-12: ibdiagnet's --ber_thresh)") !=
          std::string::npos);
    CHECK(f.tier_cost[tier::spine] == Approx(cost * 16 / 12));
    CHECK(capacity(f)[1].bad_gbps == 4 * 400);
    CHECK(decode_snapshot(encode_snapshot(f)).value().tier_cost[tier::spine] == f.tier_cost[tier::spine]);
}

TEST_CASE("counters in every tool's words", "[topo]") {
    rail_fabric w(1, 4, 1, 2);
    const auto d = read_ibnetdiscover(w.text()).value();
    const auto leaf = w.leaves[0][0];
    std::uint32_t lid = 0;
    for (const auto& n : d.nodes)
        if (n.id == leaf) lid = n.lid;
    const auto text = GENERATE_COPY(
        fmt::format(
            "# Port counters: Lid {} port 2 (CapMask: 0x1300)\nPortSelect:......................2\n"
            "SymbolErrorCounter:..............11\nPortXmitWait:....................999999\n"
            "# Port counters: Lid {} port 255 (CapMask: 0x1300)\nSymbolErrorCounter:..............65535\n",
            lid, lid),
        fmt::format(
            "Errors for 0x{0:016x} \"leaf-0-0\"\n   GUID 0x{0:x} port ALL: [SymbolErrorCounter == 11]\n"
            "   GUID 0x{0:x} port 2: [SymbolErrorCounter == 11] [PortXmitWait == 9999 (9.8K)]\n",
            leaf),
        fmt::format(
            "Ty : # : #IB : GUID : LID : Sta : Raw BER : Effective BER : Symbol BER : Symbol Err : Effective "
            "Err : Node Desc\nSW : sw1p2 : 2 : 0x{:x} : 9 (0x9) : ACT : 1e-5 : 2e-11 : 3e-14 : 4 : 5 : "
            "\"MF0;leaf:01\"\n",
            leaf),
        fmt::format("#node_guid,Port_Number,SymbolErrorCounterExtended\n0x{:x},2,11.0\n", leaf),
        as_db_csv(d, fmt::format("START_PM_INFO\nNodeGUID,PortGUID,PortNumber,SymbolErrorCounter,"
                                 "SymbolErrorCounterExt\n0x{0:x},0x{0:x},2,5,0xb\nEND_PM_INFO\n",
                                 leaf)));
    INFO(text);
    auto f = w.model();
    apply_health(f, read(text));
    REQUIRE(of_kind(f, "bad-link").size() == 1);
    CHECK(evidence(f).find(" at leaf-0-0 port 2 (more than ") != std::string::npos);
}

TEST_CASE("a counter too large for us is very large", "[topo][hostile]") {
    rail_fabric w(1, 4, 1, 2);
    const auto* value =
        GENERATE("18446744073709551616", "1e19", "1000000000000000000.0", "0xffffffffffffffffff");
    auto f = w.model();
    apply_health(f, read(fmt::format("#node_guid,Port_Number,SymbolErrorCounter\n0x{:x},2,{}\n",
                                     w.leaves[0][0], value)));
    CHECK(of_kind(f, "bad-link").size() == 1);
}

TEST_CASE("what is no link's fault accuses none", "[topo]") {
    rail_fabric w(1, 4, 1, 2);
    auto f = w.model();
    apply_health(
        f, read(fmt::format("node_guid,port_num,PortXmitWait,PortXmitDiscards,PortRcvRemotePhysicalErrors,"
                            "PortRcvSwitchRelayErrors,symbol_ber,effective_ber\n0x{:x},2,9e9,70000,70000,"
                            "70000,N/A,NA\n",
                            w.leaves[0][0])));
    CHECK(f.defects.empty());
}

TEST_CASE("a name with separators accuses no other port", "[topo][hostile]") {
    rail_fabric w(1, 4, 1, 2);
    const auto leaf = w.leaves[0][0];
    auto f = w.model();
    const auto h =
        read(fmt::format("node_guid,node_description,port_num,symbol_ber\n0x{0:x},evil,1,0.5,1,0\n"
                         "0x{0:x},\"evil,1,0.5\",2,0\n",
                         leaf));
    CHECK(h.skipped_lines == 1);
    apply_health(f, h);
    CHECK(f.defects.empty());
}

TEST_CASE("limits are the site's to set", "[topo]") {
    const auto limits =
        read_error_limits("# ours\nSymbolErrorCounter=300 # high\nPortXmitWait=1000\nBER=1e-7\n", "ours");
    REQUIRE(limits);
    CHECK(limits->count[link_counter::symbol_errors] == 300);
    CHECK(limits->count[link_counter::receive_errors] == 10);
    auto f = model_of("ibnetdiscover.txt");
    apply_health(f, read(fixture("ibqueryerrors-faults.txt")), *limits);
    CHECK(of_kind(f, "bad-link").size() == 1);
    for (const auto* wrong : {"SymbolErrorCounter\n", "SymbolErrorCounter=-1\n", "BER=2\n", "BER=x\n"})
        CHECK(read_error_limits(wrong, "ours").error().what.find("line 1") != std::string::npos);
}

TEST_CASE("firmware unlike that of the same boards", "[topo]") {
    rail_fabric w(2, 8, 1, 2);
    const auto d = read_ibnetdiscover(w.text()).value();
    std::string info =
        "START_NODES_INFO\nNodeGUID,HWInfo_DeviceID,FWInfo_SubMinor,FWInfo_Minor,FWInfo_Major,"
        "FWInfo_PSID,FWInfo_Extended_Major,FWInfo_Extended_Minor,FWInfo_Extended_SubMinor\n";
    for (unsigned g = 0; g < 2; ++g)
        for (unsigned h = 0; h < 8; ++h)
            info += fmt::format("0x{:x},4129,0,0,0,MT_0838,0x1c,0x27,{}\n", w.hcas[g][h][0],
                                g + h == 3 ? "0x3ea" : "0x800");
    // Of another board nothing follows; one that did not answer has no version; two of two differ.
    info += fmt::format("0x{:x},54002,0,0,0,MT_1,0x1f,1,2\n0x{:x},54002,0,0,0,MT_2,0x1f,1,3\n", w.spines[0],
                        w.spines[1]);
    info += fmt::format("0x{:x},54002,0,0,0,MT_3,N/A,N/A,N/A\n", w.leaves[0][0]);
    auto f = build_fabric(read_dump(as_db_csv(d, info + "END_NODES_INFO\n")).value());
    apply_health(f, read(as_db_csv(d, info + "END_NODES_INFO\n")));
    const auto odd = of_kind(f, "odd-firmware");
    REQUIRE(odd.size() == 2);
    CHECK(odd[0].evidence == "28.39.1002, 14 of 16 with board MT_0838 have 28.39.2048");
    CHECK(odd[0].objects == std::vector<std::string>{"g0n03 mlx5_0"});
    // The same file twice, as where FABRIC is given as --health too, tells nothing twice.
    auto twice = read(as_db_csv(d, info + "END_NODES_INFO\n"));
    REQUIRE(read_health(as_db_csv(d, info + "END_NODES_INFO\n"), twice));
    apply_health(f, twice);
    REQUIRE(of_kind(f, "odd-firmware").size() == 2);
    CHECK(of_kind(f, "odd-firmware")[0].evidence == odd[0].evidence);
    // No version is usual where each has another.
    apply_health(f, read(fmt::format(
                        "START_NODES_INFO\nNodeGUID,FWInfo_Major,FWInfo_Minor,FWInfo_SubMinor\n0x{:x},1,2,3\n"
                        "0x{:x},1,2,4\nEND_NODES_INFO\n",
                        w.spines[0], w.spines[1])));
    REQUIRE(of_kind(f, "odd-firmware").size() == 1);
    CHECK(of_kind(f, "odd-firmware")[0].evidence.find("no version") != std::string::npos);
}

TEST_CASE("subnet managers", "[topo]") {
    auto f = model_of("ibnetdiscover.txt");
    apply_health(f, read(fixture("saquery-smir.txt") + fixture("sminfo.txt")));
    CHECK(f.defects.empty());
    REQUIRE(f.managers.size() == 2);
    CHECK(f.managers[0].name == "sm01 mlx5_0");
    CHECK(f.managers[0].state == subnet_manager::role::master);
    CHECK(f.managers[0].priority == 14);
    CHECK(decode_snapshot(encode_snapshot(f)).value().managers[1].name == f.managers[1].name);
    // sminfo asks the master alone: whether there is a standby is not known.
    apply_health(f, read(fixture("sminfo.txt")));
    CHECK(f.managers.size() == 1);
    CHECK(f.defects.empty());
    const auto listed = [&](const std::string& rows) {
        apply_health(f, read("START_SM_INFO\nNodeGUID,PortGUID,PortNumber,SmState,Priority\n" + rows +
                             "END_SM_INFO\n"));
        return f.defects.empty() ? std::string() : f.defects.back().kind;
    };
    CHECK(listed("0xa088c20200000000,0xa088c20200000001,1,3,14\n") == "no-standby");
    CHECK(listed("0xa088c20200000000,0x1,1,3,14\n0xa088c20300003000,0x2,1,2,1\n").empty());
    CHECK(listed("0xa088c20200000000,0x1,1,3,14\n0xa088c20300003000,0x2,1,3,1\n") == "two-masters");
    CHECK(listed("0xa088c20200000000,0x1,1,1,14\n") == "no-master");
}

TEST_CASE("what tells nothing of health is refused, and hostile texts are bounded", "[topo][hostile]") {
    health out;
    for (const auto& text : {std::string(), std::string("hello\n"), fixture("ibnetdiscover.txt"),
                             std::string(4096, '\0'), std::string("<html></html>")})
        CHECK_FALSE(read_health(text, out));
    CHECK(read_health("START_PM_INFO\nNodeGUID,PortNumber\n0x1,1\n", out).error().what.find("PM_INFO") !=
          std::string::npos);
    std::string open_quotes, many;
    for (int i = 0; i < 200'000; ++i) open_quotes += "\"a,";
    for (int i = 0; i < 10'000'000; ++i) many += ',';
    std::vector<std::string_view> fields;
    split_row(open_quotes, ',', fields);
    CHECK_FALSE(read_health(open_quotes, out));
    split_row(many, ',', fields);
    CHECK(fields.size() < 10'000);
    std::string ports, managers;
    for (int i = 0; i < 100'000; ++i) {
        ports += "   GUID 0x1 port 1: [SymbolErrorCounter == 99] [" + std::string(20, '[') + "\n";
        managers += "sminfo: sm lid 1 sm guid 0x1, activity count 1 priority 99 state 77 X\n";
    }
    auto f = model_of("ibnetdiscover.txt");
    health h = read("Errors for \"a\x1b[31m\"\n" + ports + managers);
    CHECK(h.managers[0].state == subnet_manager::role::inactive);
    CHECK(apply_health(f, h).strangers == 100'000);
    CHECK(f.managers.size() == 1);
    for (const auto& p : h.ports) REQUIRE(p.name.find('\x1b') == std::string::npos);
}

}  // namespace test_health
