// SPDX-License-Identifier: BSD-3-Clause
//
// Fabrics of other networks than InfiniBand, and from UFM: what their tools tell, and nothing that they do
// not.
#include <algorithm>
#include <functional>
#include <set>

#include <banyan/topo/placement.hpp>
#include <banyan/topo/reader.hpp>
#include <banyan/topo/snapshot.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/file.hpp"
#include "common/text.hpp"
#include "test/built.hpp"

namespace test_networks {

using namespace banyan;
using namespace banyan::topo;

namespace {

fabric model(const std::string& text) {
    const auto d = read_dump(text);
    INFO((d ? "" : d.error().text()));
    REQUIRE(d);
    auto f = build_fabric(*d);
    const auto again = decode_snapshot(encode_snapshot(f));
    REQUIRE(again);
    CHECK(again->untold == f.untold);
    return f;
}

std::string why_not(const std::string& text) {
    const auto d = read_dump(text);
    REQUIRE_FALSE(d);
    return d.error().text();
}

/// Hosts of each leaf group, with the number of its rails.
std::set<std::string> groups(const fabric& f) {
    std::set<std::string> out;
    for (const auto& g : f.leaf_groups) {
        std::vector<std::string> names;
        for (const auto h : g.hosts) names.push_back(f.hosts[h].name);
        out.insert(fmt::format("{} x{}", compress_hostlist(names), g.leaves.size()));
    }
    return out;
}

/// What `local` says of its port's neighbour, as lldpcli 1.0 prints it.
std::string says(const std::string& local, const std::string& port, const std::string& peer,
                 const std::string& peer_port, bool peer_is_switch, const std::string& chassis = "") {
    const auto key = [&](const std::string& rest) {
        return fmt::format("{}: lldp.{}.{}\n", local, port, rest);
    };
    return key("via=LLDP") + key("rid=1") +
           key("chassis.mac=" + (chassis.empty() ? "02:" + peer.substr(0, peer.find('.')) : chassis)) +
           key("chassis.name=" + peer) +
           key("chassis.descr=Linux\n" + local + ": of two lines = one system") +
           key(fmt::format("chassis.Bridge.enabled={}", peer_is_switch ? "on" : "off")) +
           key("chassis.Router.enabled=on") +
           (peer_is_switch ? key("port.ifname=" + peer_port) : key("port.mac=02:00:00:00:00:01")) +
           key("port.descr=" + peer_port) + key("port.ttl=120");
}

/// Two groups of four hosts with two rails under one spine: as the hosts see it, or the switches.
std::string two_groups(bool hosts, bool switches, bool management = false) {
    std::string out;
    for (int h = 0; h < 8; ++h) {
        const auto host = fmt::format("gpu{}", h + 1);
        for (int r = 0; r < 2; ++r) {
            const auto leaf = fmt::format("leaf-{}-{}", h / 4, r), nic = fmt::format("ens{}np0", 10 + r);
            // Asked by its short name, announced with its domain.
            if (hosts) out += says(host, nic, leaf + ".pod1", fmt::format("swp{}", h % 4 + 1), true);
            if (switches) out += says(leaf, fmt::format("swp{}", h % 4 + 1), host, nic, false);
        }
        if (management && hosts) out += says(host, "eno1", "mgmt1", fmt::format("swp{}", h), true);
    }
    for (int l = 0; l < 4 && switches; ++l) {
        const auto leaf = fmt::format("leaf-{}-{}", l / 2, l % 2);
        out += says(leaf, "swp31", "spine1", fmt::format("swp{}", l), true);
        out += says("spine1", fmt::format("swp{}", l), leaf, "swp31", true);
        out += says(leaf, "swp32", fmt::format("leaf-{}-{}", l / 2, 1 - l % 2), "swp32", true);  // MLAG
    }
    return out;
}

}  // namespace

TEST_CASE("LLDP as lldpd printed it", "[topo][networks]") {
    const auto text = read_file(testing::fixture("lldp/lldpcli-keyvalue.txt"), 1 << 20).value();
    const auto f = model(text);
    CHECK(f.defects.empty());
    CHECK(groups(f) == std::set<std::string>{"gpu[001-002] x2"});
    CHECK(f.switches.size() == 3);
    CHECK(f.hcas.size() == 4);
}

TEST_CASE("LLDP: hosts tell the groups, switches what is above", "[topo][networks]") {
    const std::set<std::string> expected = {"gpu[1-4] x2", "gpu[5-8] x2"};
    const auto both = model(two_groups(true, true));
    CHECK(groups(both) == expected);
    CHECK(both.defects.empty());
    CHECK_FALSE(both.untold.upper);
    CHECK_FALSE(both.untold.rails);
    CHECK(both.untold.devices);
    CHECK(both.switches.size() == 5);
    const auto of_switches = model(two_groups(false, true));
    CHECK(groups(of_switches) == expected);
    CHECK(of_switches.hosts[0].hcas.size() == 2);
    const auto of_hosts = model(two_groups(true, false));
    CHECK(groups(of_hosts) == expected);
    CHECK(of_hosts.untold.upper);
    CHECK(of_hosts.defects.empty());
    // Nobody saw a way between them; that is no proof of two islands.
    CHECK(tier_between(of_hosts, find_host(of_hosts, "gpu1"), find_host(of_hosts, "gpu5")) == tier::spine);
}

TEST_CASE("LLDP: a management network joins no groups", "[topo][networks]") {
    const auto f = model(two_groups(true, true, true));
    CHECK(groups(f) == std::set<std::string>{"gpu[1-4] x2", "gpu[5-8] x2"});
}

TEST_CASE("LLDP: what does not fit is told", "[topo][networks]") {
    CHECK_THAT(why_not(says("gpu1", "e0", "sonic", "Ethernet0", true, "02:01") +
                       says("gpu2", "e0", "sonic", "Ethernet0", true, "02:02")),
               Catch::Contains("two switches are called sonic"));
    CHECK_THAT(why_not("lldp.eth0.via=LLDP\nlldp.eth0.chassis.name=leaf01\n"),
               Catch::Contains("of one system"));
    // One system without the program, one whose NIC's own agent answers, one that is cabled to another host.
    auto text = two_groups(true, false) + "gpu9: bash: lldpcli: command not found\n";
    text +=
        "gpu1: lldp.ens12.via=LLDP\ngpu1: lldp.ens12.chassis.mac=02:77\ngpu1: lldp.ens12.port.mac=02:78\n";
    const auto d = read_dump(text);
    REQUIRE(d);
    REQUIRE(d->complaints.size() == 2);
    CHECK_THAT(d->complaints[1].what, Catch::Contains("the neighbour of gpu1 on ens12 gives no name"));
    CHECK_THAT(d->complaints[0].what, Catch::Contains("gpu9: bash: lldpcli"));
    CHECK(groups(build_fabric(*d)).size() == 2);
    CHECK(read_dump(two_groups(true, false) + "lldp.ens10np0.via=LLDP\n")->complaints.size() == 1);
    CHECK(read_dump(two_groups(true, false) + "gpu9: lldp.e0.via=LLDP\ngpu9: lldp.e0.chassis.mac=02:9\n")
              ->complaints.size() == 1);
    // A host that forwards packets for containers is no switch.
    std::string docker = two_groups(false, true);
    for (std::size_t at = 0; (at = docker.find("Bridge.enabled=off", at)) != docker.npos;)
        docker.replace(at, 18, "Bridge.enabled=on");
    CHECK(groups(model(docker)).size() == 2);
}

TEST_CASE("LLDP: hosts with a neighbour in them, mixed lines, names with and without domain",
          "[topo][networks]") {
    const std::set<std::string> expected = {"gpu[1-4] x2", "gpu[5-8] x2"};
    auto bmcs = two_groups(true, false);
    for (int h = 1; h <= 8; ++h)
        bmcs += says(fmt::format("gpu{}", h), "usb0", fmt::format("bmc{}", h), "", false);
    CHECK(groups(build_fabric(*read_dump(bmcs))) == expected);
    // The TLV of capabilities is optional.
    std::string bare;
    const auto text = two_groups(true, true);
    for (const auto line : split(std::string_view(text), '\n'))
        if (line.find(".enabled=") == line.npos) bare += std::string(line) + "\n";
    CHECK(groups(model(bare)) == expected);
    // What three programs print at once.
    std::vector<std::string_view> queues[3];
    for (const auto line : split(std::string_view(text), '\n')) {
        const auto host = line.substr(0, line.find(':'));
        queues[std::hash<std::string_view>()(host) % 3].push_back(line);
    }
    std::string woven;
    for (std::size_t i = 0; i < text.size(); ++i)
        for (const auto& q : queues)
            if (i < q.size()) woven += std::string(q[i]) + "\n";
    CHECK(groups(model(woven)) == expected);
    // Asked with the domain, announced without.
    std::string asked;
    for (const auto line : split(std::string_view(text), '\n')) {
        const auto end = line.find(": ");
        asked +=
            end == line.npos ? "\n" : fmt::format("{}.site.org{}\n", line.substr(0, end), line.substr(end));
    }
    for (std::size_t at; (at = asked.find(".pod1")) != asked.npos;) asked.erase(at, 5);
    CHECK(groups(model(asked)) == expected);
}

TEST_CASE("Omni-Path: what opareport and opaextractsellinks print", "[topo][networks]") {
    std::string report = "Link Summary\n\n8 Links in Fabric:\nRate NodeGUID          Port Type Name\n", list;
    const auto link = [&](int a, int a_port, const char* kind, const std::string& a_name, int b, int b_port,
                          const std::string& b_name, int gbps) {
        report += fmt::format("{}g 0x00117501{:08x} {:3} {}   {}\n<->  0x00117501{:08x} {:3} SW   {}\n", gbps,
                              a, a_port, kind, a_name, b, b_port, b_name);
        list += fmt::format("0x00117501{:08x};{};{};{};0x00117501{:08x};{};SW;{}\n", a, a_port, kind, a_name,
                            b, b_port, b_name);
    };
    for (int h = 0; h < 4; ++h)
        link(16 + h, 1, "FI", fmt::format("n{} hfi1_0", h + 1), 1 + h / 2, 1 + h % 2,
             fmt::format("opa1 L{}A", 101 + h / 2), h == 2 ? 50 : 100);
    for (int l = 0; l < 4; ++l)
        link(1 + l / 2, 30 + l % 2, "SW", fmt::format("opa1 L{}A", 101 + l / 2), 9, 1 + l, "opa1 S201A", 100);
    report += "-------------------------------------\n";
    const auto f = model(report);
    CHECK(groups(f) == std::set<std::string>{"n[1-2] x1", "n[3-4] x1"});
    CHECK(f.untold == untold_facts{});
    CHECK(f.switches.size() == 3);
    const auto& slow = f.hcas[f.hosts[find_host(f, "n3")].hcas[0]];
    CHECK((slow.rate.width == 4 && slow.rate.lane_gbps10 == 125));
    CHECK(slow.device == "hfi1_0");
    const auto bare = model(list);
    CHECK(groups(bare) == groups(f));
    CHECK(bare.untold.rates);
    CHECK_THAT(why_not(report.substr(0, report.size() / 2)), Catch::Contains("8 links, and 4 stand"));
}

TEST_CASE("UFM's list of links", "[topo][networks]") {
    std::string text = "[";
    const auto link = [&](const std::string& guid, const std::string& port, const std::string& label,
                          const std::string& description, const std::string& switch_guid,
                          const std::string& switch_port, const std::string& switch_label,
                          const std::string& name) {
        text += fmt::format(
            R"({}{{"source_guid":"{}","source_port":"{}","source_port_dname":"{}",
"source_port_node_description":"{}","destination_guid":"{}","destination_port":"{}",
"destination_port_dname":"{}","destination_port_node_description":"{}:{}","width":"4x","capabilities":[]}})",
            text.size() > 1 ? ",\n" : "", guid, port, label, description, switch_guid, switch_port,
            switch_label, name, switch_label);
    };
    for (int h = 0; h < 4; ++h)
        for (int r = 0; r < 2; ++r)  // both HCAs of a host have the system's GUID
            link(fmt::format("0c42a103001b{:04x}", h), "1", "HCA-1/1", fmt::format("n{} mlx5_{}", h + 1, r),
                 fmt::format("0c42a103009d{:04x}", 2 * (h / 2) + r), fmt::format("{}", h + 1),
                 fmt::format("{}", h + 1), fmt::format("leaf-{}-{}", h / 2, r));
    for (int l = 0; l < 4; ++l)  // each to a line card of one director
        link(fmt::format("0c42a103009d{:04x}", l), "31", "31", fmt::format("leaf-{}-{}:31", l / 2, l % 2),
             "0c42a103008d0000", "3", "L21/U1/" + std::to_string(l + 1), "director");
    const auto f = model(text + "]");
    CHECK(groups(f) == std::set<std::string>{"n[1-2] x2", "n[3-4] x2"});
    CHECK(f.defects.empty());
    CHECK(f.untold.rates);
    CHECK(f.switches.size() == 5);
    CHECK(f.hcas.size() == 8);
    CHECK_THAT(why_not(text), Catch::Contains("list of links is cut"));
    // The list has no order.
    auto objects = nlohmann::json::parse(text + "]");
    std::reverse(objects.begin(), objects.end());
    const auto turned = model(objects.dump());
    for (std::size_t i = 0; i < f.switches.size(); ++i) CHECK(turned.switches[i].id == f.switches[i].id);
    objects[0]["source_port"] = "99999";
    CHECK(read_dump(objects.dump())->complaints.size() == 1);
    const auto poor = read_dump(text + R"(,{"source_guid":"1"},7,{"source_guid":true}])");
    REQUIRE(poor);
    CHECK(poor->complaints.size() == 3);
}

}  // namespace test_networks
