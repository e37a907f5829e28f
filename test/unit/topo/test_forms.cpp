// SPDX-License-Identifier: BSD-3-Clause
//
// iblinkinfo, ibdiagnet's db_csv and lst: the same fabric gives the same model, and what is broken in them is
// told.
#include <algorithm>
#include <chrono>
#include <set>

#include <banyan/topo/health.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"
#include "fixtures.hpp"
#include "form_writer.hpp"

namespace test_forms {

using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

/// All that tells two models apart.
std::set<std::string> contents(const fabric& f) {
    std::set<std::string> out;
    const auto id = [&](const port_ref& p) {
        return fmt::format("{:x}:{}", p.kind == node_kind::hca ? f.hcas[p.index].id : f.switches[p.index].id,
                           p.port);
    };
    for (const auto& l : f.links)
        out.insert(fmt::format("{} {} {}x{}", id(l.a), id(l.b), l.rate.width, l.rate.lane_gbps10));
    for (const auto& s : f.switches) out.insert(fmt::format("{} {} {} {}", s.id, s.name, s.lid, s.level));
    for (const auto& h : f.hcas) out.insert(fmt::format("{} {} {} {}", h.id, h.name, h.lid, h.rail));
    for (const auto& g : f.leaf_groups)
        for (const auto h : g.hosts) out.insert(g.id + " " + f.hosts[h].name);
    for (const auto& d : f.defects)
        for (const auto& where : d.where) out.insert(d.kind + " " + where);
    for (const auto& e : f.excluded) out.insert(e.kind + " " + e.name);
    return out;
}

std::set<std::string> read(const std::string& text) {
    const auto d = read_dump(text);
    INFO((d ? std::string() : d.error().text()));
    REQUIRE(d);
    CHECK(d->complaints.empty());
    return contents(build_fabric(*d));
}

std::string refused(const std::string& text) {
    const auto d = read_dump(text);
    REQUIRE_FALSE(d);
    CHECK_FALSE(d.error().hint.empty());
    return d.error().what;
}

}  // namespace

TEST_CASE("every tool's output gives the same model", "[topo]") {
    const std::string name =
        GENERATE("ibnetdiscover.txt", "ibnetdiscover-3level-sharp.txt", "ibnetdiscover-fattree3.txt",
                 "ibnetdiscover-ndr-ibsim0.12.txt", "ibnetdiscover-after-faults.txt");
    INFO(name);
    const auto d = read_ibnetdiscover(fixture(name)).value();
    const auto expected = contents(build_fabric(d));
    CHECK(read(as_db_csv(d)) == expected);
    CHECK(read(as_link_list(d)) == expected);
    CHECK(read(as_link_info(d, false)) == expected);
    CHECK(read(as_link_info(d, true)) == expected);
    CHECK(read(as_port_list(d)) == expected);
}

TEST_CASE("an HCA of two ports is one in every tool's output", "[topo]") {
    dump_writer w;
    const auto a = w.add_switch("leaf-a"), b = w.add_switch("leaf-b"), spine = w.add_switch("spine");
    w.link(a, 40, spine, 1);
    w.link(b, 40, spine, 2);
    for (unsigned i = 1; i < 9; ++i) {
        // Two that were never named have one description.
        const auto h =
            w.add_hca(i < 7 ? fmt::format("n{} mlx5_0", i) : "MT4119 ConnectX5   Mellanox Technologies");
        w.link(h, 1, a, i);
        w.link(h, 2, b, i);
    }
    const auto d = read_ibnetdiscover(w.text()).value();
    const auto f = build_fabric(d);
    CHECK(f.hcas.size() == 8);
    const auto expected = contents(f);
    CHECK(read(as_port_list(d)) == expected);
    CHECK(read(as_link_info(d, false)) == expected);
    CHECK(read(as_link_info(d, true)) == expected);
    CHECK(read(as_link_list(d)) == expected);
    CHECK(read(as_db_csv(d)) == expected);
}

TEST_CASE("what iblinkinfo printed is what ibnetdiscover printed", "[topo]") {
    const auto records = model_of("ibnetdiscover.txt"), links = model_of("iblinkinfo.txt");
    CHECK(links.defects.empty());
    CHECK(links.links.size() == records.links.size());
    REQUIRE(links.hosts.size() == records.hosts.size());
    for (std::size_t i = 0; i < links.hosts.size(); ++i) CHECK(links.hosts[i].name == records.hosts[i].name);
    CHECK(links.leaf_groups[0].leaves == records.leaf_groups[0].leaves);
    CHECK(links.links[0].rate == records.links[0].rate);
}

TEST_CASE("names with quotes, commas and braces stay whole", "[topo]") {
    dump_writer w;
    const auto leaf = w.add_switch("le\"af, {1}: x");
    const auto spine = w.add_switch("s\",9,2,1,1,0x7,\"0x6 ==( )==>");
    w.link(leaf, 40, spine, 1);
    for (unsigned i = 1; i < 5; ++i) w.link(w.add_hca(fmt::format("n0{} mlx5_0", i)), 1, leaf, i);
    const auto d = read_ibnetdiscover(w.text()).value();
    const auto expected = contents(build_fabric(d));
    CHECK(read(as_db_csv(d)) == expected);
    CHECK(read(as_link_list(d)) == expected);
}

TEST_CASE("no name makes another tool's output of a dump", "[topo][hostile]") {
    rail_fabric w(1, 4, 2, 2);
    const auto plain = w.text();
    for (const std::string name :
         {"x ==( )==>", "START_NODES", "{ CA NodeGUID:", "\\nSTART_NODES", "CA: x", "SW 1 1 0x1"}) {
        auto text = plain;
        for (auto at = text.find("leaf-0-0"); at != std::string::npos; at = text.find("leaf-0-0", at + 1))
            text.replace(at, 8, name);
        CHECK(build_fabric(read_dump(text).value()).links.size() == w.model().links.size());
    }
}

TEST_CASE("an output that is cut is refused", "[topo][hostile]") {
    const auto d = read_ibnetdiscover(fixture("ibnetdiscover.txt")).value();
    for (const auto& text : {as_db_csv(d), as_link_info(d, false), as_link_info(d, true)})
        for (const auto share : {2, 3, 5}) {
            INFO(text.substr(0, 40) << share);
            CHECK(refused(text.substr(0, text.size() / static_cast<std::size_t>(share))).size() > 10);
        }
    const auto list = as_link_list(d);
    CHECK(refused(list.substr(0, list.size() / 2)).find("cut") != std::string::npos);
    const auto csv = as_db_csv(d);
    CHECK(refused(csv.substr(0, csv.find("START_LINKS"))).find("LINKS") != std::string::npos);
    CHECK(refused(as_db_csv(d) + "START_PM_INFO\nNodeGUID,PortNumber\n").find("PM_INFO") !=
          std::string::npos);
}

namespace {

std::string first_lines(const std::string& text, std::size_t count) {
    std::size_t at = 0;
    while (count-- > 0) at = text.find('\n', at) + 1;
    return text.substr(0, at);
}

bool says_cut(const dump& d) {
    return std::any_of(d.complaints.begin(), d.complaints.end(),
                       [](const auto& c) { return c.what.find("cut") != std::string::npos; });
}

}  // namespace

TEST_CASE("an output that is cut at the end of a line is refused, or told to be cut", "[topo][hostile]") {
    // Also of one host.
    const auto w = GENERATE(rail_fabric(2, 4, 2, 2), rail_fabric(1, 1, 2, 1));
    const auto d = read_ibnetdiscover(w.text()).value();
    const bool one = d.nodes.size() < 6;
    // The port list and a list of both ends: an end is told by what the other end says.
    for (const auto& text : {as_port_list(d), as_link_list(d, true)}) {
        const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
        CHECK_FALSE(says_cut(read_dump(text).value()));
        // Before any cable is there from both ends, a list might be one that has each but once.
        for (std::size_t n = text.starts_with('{') ? lines / 2 + 1 : 1; n + 1 < lines; ++n) {
            const auto cut = read_dump(first_lines(text, n));
            INFO(text.substr(0, 4) << " " << n << " of " << lines);
            if (cut) CHECK((says_cut(*cut) || !build_fabric(*cut).defects.empty()));
            if (n < lines * 2 / 3) CHECK_FALSE(cut.has_value());
        }
    }
    CHECK(refused(first_lines(w.text(), one ? 12 : 60)).find("cut") != std::string::npos);
    // Whole sections, of one node or of all.
    const auto csv = as_db_csv(d);
    CHECK(refused(csv.substr(0, csv.find("START_LINKS"))).find("LINKS") != std::string::npos);
}

TEST_CASE("a list that has each cable from both ends is the same fabric", "[topo]") {
    const auto d = read_ibnetdiscover(fixture("ibnetdiscover.txt")).value();
    CHECK(read(as_link_list(d, true)) == contents(build_fabric(d)));
}

TEST_CASE("a cable that a list has twice is one cable, and told", "[topo][hostile]") {
    const auto d = read_ibnetdiscover(fixture("ibnetdiscover.txt")).value();
    const auto expected = contents(build_fabric(d));
    const auto list = as_link_list(d);
    const auto line = first_lines(list, 1);
    const auto first = line.find("{ "), second = line.find("{ ", first + 2), end = line.find("PHY=");
    const auto turned =
        line.substr(second, end - second) + line.substr(first, second - first) + line.substr(end);
    const auto count = static_cast<std::uint32_t>(std::count(list.begin(), list.end(), '\n'));
    const auto at = GENERATE(1u, 100u, 0u);  // 0: at the end
    for (const auto& again : {line, turned}) {
        const auto lines = at == 0 ? count : at;
        const auto before = first_lines(list, lines);
        const auto got = read_dump(before + again + list.substr(before.size()));
        INFO(again << " " << lines << (got ? std::string() : got.error().text()));
        REQUIRE(got);
        REQUIRE(got->complaints.size() == 1);
        CHECK(got->complaints[0].line == lines + 1);
        CHECK(got->complaints[0].what.find("listed above already") != std::string::npos);
        CHECK(contents(build_fabric(*got)) == expected);
    }
    // Also in a list of both ends.
    const auto both = as_link_list(d, true);
    const auto got = read_dump(both + first_lines(both, 1)).value();
    CHECK(got.complaints.size() == 1);
    CHECK(contents(build_fabric(got)) == expected);
}

TEST_CASE("iblinkinfo of the switches alone is refused", "[topo]") {
    const auto all = fixture("iblinkinfo.txt");
    const auto switches = all.substr(all.find("Switch: "));
    CHECK(refused(switches).find("not in the text") != std::string::npos);
}

TEST_CASE("iblinkinfo before any subnet manager has given LIDs", "[topo]") {
    dump_writer w;
    const auto leaf = w.add_switch("leaf");
    for (unsigned i = 1; i < 9; ++i) w.link(w.add_hca(fmt::format("n{} mlx5_0", i)), 1, leaf, i);
    auto d = read_ibnetdiscover(w.text()).value();
    for (auto& n : d.nodes) n.lid = 0;
    for (auto& p : d.ports) p.lid = p.peer_lid = 0;
    CHECK(refused(as_link_info(d, false)).find("not in the text") != std::string::npos);
    CHECK(read(as_link_info(d, true)).size() > 8);  // -l has GUIDs
}

TEST_CASE("two nodes with one LID are told apart by what leads back to them", "[topo][hostile]") {
    rail_fabric w(2, 4, 2, 2);
    auto d = read_ibnetdiscover(w.text()).value();
    const auto expected = build_fabric(d);
    CHECK(expected.defects.empty());
    for (auto& n : d.nodes)
        if (n.name == "leaf-1-1")
            for (const auto& other : d.nodes)
                if (other.name == "leaf-0-0") n.lid = other.lid;
    const auto f = build_fabric(read_dump(as_link_info(d, false)).value());
    CHECK(f.links.size() == expected.links.size());
    REQUIRE(f.defects.size() == 1);
    CHECK(f.defects[0].kind == "duplicate-lid");
    CHECK(f.defects[0].objects == std::vector<std::string>{"leaf-0-0", "leaf-1-1"});
}

TEST_CASE("LIDs of two subnets may be the same, and a range must be free", "[topo]") {
    const std::string one =
        "vendid=0x2c9\nCa\t1 \"H-00000000000000a1\"\t\t# \"n1 mlx5_0\"\n"
        "[1](a2) \t\"S-0000000000000051\"[1]\t\t# lid 4 lmc 0 \"leaf\" lid 7 4xHDR\n\n"
        "vendid=0x2c9\nSwitch\t40 \"S-0000000000000051\"\t\t# \"leaf\" enhanced port 0 lid 7 lmc 0\n"
        "[1]\t\"H-00000000000000a1\"[1](a2) \t\t# \"n1 mlx5_0\" lid 4 4xHDR\n\n";
    auto other = one;
    for (auto at = other.find("00000000000000"); at != std::string::npos;
         at = other.find("00000000000000", at + 1))
        other[at] = 'b';
    const auto of = [](const std::string& text) {
        std::size_t n = 0;
        for (const auto& d : build_fabric(read_ibnetdiscover(text).value()).defects)
            n += d.kind == "duplicate-lid";
        return n;
    };
    CHECK(of(one + other) == 0);
    auto ranged = one;
    ranged.replace(ranged.find("lid 4 lmc 0"), 11, "lid 4 lmc 2");
    CHECK(of(ranged) == 1);  // 4 to 7
    ranged.replace(ranged.find("lmc 2"), 5, "lmc 1");
    CHECK(of(ranged) == 0);
}

TEST_CASE("a LID that many have is one defect", "[topo]") {
    rail_fabric w(2, 16, 2, 2);
    auto d = read_ibnetdiscover(w.text()).value();
    const unsigned many = GENERATE(3u, 40u);
    unsigned n = 0, other = 0;
    for (auto& p : d.ports) {
        if (p.lid == 0) continue;
        if (n++ < many)
            p.lid = 40000;
        else if (other++ < 2)
            p.lid = 40001;
    }
    const auto f = build_fabric(d);
    REQUIRE(f.defects.size() == 2);
    CHECK(f.defects[0].objects.size() == std::min(many, 16u));
    CHECK(f.defects[0].evidence.find(fmt::format("{} ports answer to LID 40000", many)) == 0);
    CHECK(f.defects[1].evidence == "both answer to LID 40001");
}

TEST_CASE("hostile outputs end in bounded time", "[topo][hostile]") {
    const auto start = std::chrono::steady_clock::now();
    std::string one_lid = "Switch: 0x1 leaf:\n";
    for (int i = 0; i < 100'000; ++i)
        one_lid += "      3    1[  ] ==( 4X 53.125 Gbps Active/  LinkUp)==>       3    1[  ] \"leaf\" ( )\n";
    (void)read_dump(one_lid);
    std::string quotes = "START_NODES\nNodeDesc,NodeType,NodeGUID\n";
    for (int i = 0; i < 1000; ++i) quotes += std::string(500, '"') + ",2,0x" + std::to_string(i + 1) + "\n";
    (void)read_dump(quotes + "END_NODES\n");
    std::string doubled =
        "START_NODES\nNodeDesc,NodeType,NodeGUID\n\"a\",2,0x1\n\"b\",2,0x2\nEND_NODES\nSTART_LINKS\n"
        "NodeGuid1,PortNum1,NodeGuid2,PortNum2\n";
    for (int i = 0; i < 100'000; ++i) doubled += "0x1,1,0x2,1\n";
    const auto d = read_dump(doubled + "END_LINKS\n").value();
    CHECK(d.ports.size() == 2);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
}

TEST_CASE("a row or line that cannot be read is told with its place", "[topo]") {
    rail_fabric w(1, 4, 2, 2);
    const auto d = read_ibnetdiscover(w.text()).value();
    auto csv = as_db_csv(d);
    csv.insert(csv.find("END_NODES"), "\"x\",1,1,1,1,0x1,0xzz,0x1,1\n\"y\",1\n");
    const auto broken = read_dump(csv).value();
    REQUIRE(broken.complaints.size() == 2);
    CHECK(broken.complaints[0].line > 2);
    auto info = as_link_info(d, false);
    info.insert(info.find("Switch"), "CA: x:\n      0xzz 1 ==( )==>\n");
    CHECK(read_dump(info).value().complaints.size() == 1);
}

}  // namespace test_forms
