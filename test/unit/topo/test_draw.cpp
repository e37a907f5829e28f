// SPDX-License-Identifier: BSD-3-Clause
//
// Pictures: facts, geometry, and files that stay well-formed and small whatever the fabric is called.
// BANYAN_UPDATE_GOLDEN=1 writes the golden files anew.
#include <cstdlib>
#include <filesystem>

#include <banyan/topo/switch_names.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/file.hpp"
#include "fixtures.hpp"
#include "test/built.hpp"
#include "test/scratch_path.hpp"
#include "topo/draw/escape.hpp"
#include "topo/draw/html.hpp"
#include "topo/draw/job.hpp"
#include "topo/draw/layout.hpp"
#include "topo/draw/shelf.hpp"
#include "topo/draw/svg.hpp"

namespace test_draw {

using namespace banyan::topo;
using namespace banyan::topo::draw;
using banyan::topo::draw::health;  // not the model's

namespace {

/// Leaf groups of `hosts` hosts and `rails` leaves under `spines` spines, `links` parallel links everywhere.
fabric clos(std::uint32_t groups, std::uint32_t hosts, std::uint32_t rails, std::uint32_t spines,
            std::uint32_t links) {
    fabric f;
    const link_rate hdr{4, 500};
    const auto add_switch = [&](const std::string& name, std::uint8_t level) {
        f.switches.push_back({0xfc6a1c0300000000u + f.switches.size() * 0x40, name, 0, 65, level});
        return static_cast<std::uint32_t>(f.switches.size() - 1);
    };
    for (std::uint32_t g = 0; g < groups; ++g) {
        leaf_group group;
        group.id = fmt::format("g{}", g + 1);
        for (std::uint32_t r = 0; r < rails; ++r)
            group.leaves.push_back(
                add_switch(fmt::format("MF0;leaf-{:02}:MQM8700/U1", g * rails + r + 1), 0));
        for (std::uint32_t i = 0; i < hosts; ++i) {
            const auto h = static_cast<std::uint32_t>(f.hosts.size());
            group.hosts.push_back(h);
            host node;
            node.name = fmt::format("n{:05}", h + 1);
            node.leaf_group = g;
            f.hosts.push_back(node);
            for (std::uint32_t r = 0; r < rails; ++r) {
                const auto id = static_cast<std::uint32_t>(f.hcas.size());
                const auto port = static_cast<std::uint16_t>(i + 1);
                f.hosts[h].hcas.push_back(id);
                hca a;
                a.id = 0xa088c20300000000u + h * 0x1000u + r * 0x10u;
                a.name = fmt::format("{} mlx5_{}", f.hosts[h].name, r);
                a.host = h;
                a.rail = static_cast<std::uint16_t>(r);
                a.leaf = group.leaves[r];
                a.leaf_port = port;
                a.rate = hdr;
                f.hcas.push_back(a);
                f.links.push_back(
                    {{node_kind::hca, id, 1}, {node_kind::switch_node, group.leaves[r], port}, hdr});
            }
        }
        f.leaf_groups.push_back(group);
    }
    const auto leaves = static_cast<std::uint32_t>(f.switches.size());
    for (std::uint32_t s = 0; s < spines; ++s) {
        const auto spine = add_switch(fmt::format("MF0;spine-{:02}:MQM8700/U1", s + 1), 1);
        for (std::uint32_t leaf = 0; leaf < leaves; ++leaf)
            for (std::uint32_t k = 0; k < links; ++k)
                f.links.push_back(
                    {{node_kind::switch_node, leaf, static_cast<std::uint16_t>(hosts + 1 + s * links + k)},
                     {node_kind::switch_node, spine, static_cast<std::uint16_t>(leaf * links + k + 1)},
                     hdr});
    }
    return f;
}

/// Two groups of two hosts; a slow HCA, a lost cable between switches, a job with a spare.
fabric small_damaged() {
    auto f = clos(2, 2, 2, 2, 2);
    f.links.pop_back();  // spine-02 port 8 to leaf-04
    f.defects = {{"missing-uplink", {"MF0;leaf-04:MQM8700/U1"}, "3 uplinks, most leaves have 4", 0.9},
                 {"slow-link",
                  {"n00001 mlx5_1 port 1", "MF0;leaf-02:MQM8700/U1 port 1"},
                  "100 Gbit/s, most links have 200",
                  0.9}};
    f.hcas[1].rate = {4, 250};
    f.excluded.emplace_back().kind = "ufm";
    return f;
}

job small_job(const fabric& f) {
    const std::vector<std::uint32_t> nodes{0, 1}, spares{2};
    return job_of(f, banyan::topo::test::make("tp=2,dp=2", 2), nodes, spares, "unit").value();
}

/// What python's XML parser says of the text; empty when it is fine or when there is no python.
std::string xml_error(const std::string& text) {
    const auto file = banyan::testing::scratch_path("draw.svg");
    REQUIRE(banyan::write_file_atomic(file, text));
    const auto command = fmt::format(
        "python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' {} 2>&1", file.string());
    auto* pipe = ::popen(command.c_str(), "r");
    REQUIRE(pipe);
    std::string said;
    char buffer[512];
    while (const auto n = std::fread(buffer, 1, sizeof buffer, pipe)) said.append(buffer, n);
    const int status = ::pclose(pipe);
    std::filesystem::remove(file);
    if (said.find("python3: ") != std::string::npos) WARN("no python3: " + said);
    return status == 0 ? "" : said;
}

std::vector<std::uint64_t> unpack(const std::string& text) {
    std::vector<std::uint64_t> out;
    std::uint64_t last = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find(' ', at), text.size());
        const auto part = text.substr(at, end - at);
        const auto star = part.find('*');
        const bool falls = part[0] == '-';
        const auto d = std::stoull(part.substr(falls ? 1 : 0, star), nullptr, 16);
        for (auto n = star == std::string::npos ? 1 : std::stoull(part.substr(star + 1), nullptr, 16); n > 0;
             --n)
            out.push_back(last = falls ? last - d : last + d);
        at = end + 1;
    }
    return out;
}

std::size_t count(const std::string& text, const std::string& what) {
    std::size_t n = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
    return n;
}

void check_apart(const std::vector<box>& boxes) {
    for (std::size_t i = 0; i < boxes.size(); ++i)
        for (std::size_t j = i + 1; j < boxes.size(); ++j) {
            const auto &a = boxes[i], &b = boxes[j];
            const bool apart = a.right() <= b.x || b.right() <= a.x || a.bottom() <= b.y || b.bottom() <= a.y;
            if (!apart) FAIL(fmt::format("boxes {} and {} overlap", i, j));
        }
}

}  // namespace

TEST_CASE("parallel links are one bundle; lost ones show", "[draw]") {
    const auto f = small_damaged();
    const auto s = make_scene(f);
    REQUIRE(s.bundles.size() == 4 * 2);
    std::size_t good = 0;
    for (const auto& b : s.bundles) {
        CHECK(b.usual == 2);
        good += b.state == health::good && b.count == 2;
    }
    CHECK(good == 7);
    const auto& lost = s.bundles.back();
    CHECK(lost.low == 3);
    CHECK(lost.count == 1);
    CHECK(lost.state == health::broken);  // the model calls the leaf defective
    // What is broken is painted; the groups around it only count.
    CHECK(s.groups == std::vector{health::good, health::good});
    CHECK(s.defects_of_group == std::vector<std::uint32_t>{1, 1});
    CHECK(s.hcas[1] == health::degraded);
    CHECK(s.hosts[0] == health::degraded);

    auto cut_off = clos(1, 2, 4, 1, 1);
    cut_off.links.pop_back();
    const auto missing = make_scene(cut_off).bundles.back();
    CHECK(missing.count == 0);
    CHECK(missing.usual == 1);
    CHECK(missing.state == health::broken);
}

TEST_CASE("a defect is found by name, GUID and end of a link", "[draw]") {
    auto f = clos(1, 2, 2, 1, 1);
    f.defects = {{"factory-name", {"0xa088c20300000010"}, "", 1},
                 {"missing-rail", {"n00002"}, "", 1},
                 {"one-way-link", {"MF0;leaf-01:MQM8700/U1 port 3", "MF0;spine-01:MQM8700/U1 port 1"}, "", 1},
                 {"no-record", {"0xffffffffffffffff", "nobody port 99999999", " port ", "0xzz", ""}, "", 1}};
    const auto t = find_targets(f);
    REQUIRE(t.size() == 4);
    CHECK(t[0].hcas == std::vector<std::uint32_t>{1});
    CHECK(t[1].hosts == std::vector<std::uint32_t>{1});
    REQUIRE(t[2].links.size() == 1);
    CHECK(f.links[t[2].links[0]].a.index == 0);
    CHECK(t[2].severity == health::broken);
    CHECK((t[3].switches.empty() && t[3].hcas.empty() && t[3].hosts.empty() && t[3].links.empty()));
}

TEST_CASE("a switch without a name is found by what a defect calls it", "[draw]") {
    auto f = clos(1, 2, 2, 1, 1);
    for (auto& s : f.switches) s.name = "Quantum Mellanox Technologies";
    const switch_names names(f);
    f.defects = {{"missing-uplink", {names.label(f, 1)}, "", 1},
                 {"narrow-link", {names.label(f, 0) + " port 3", "x"}, "", 1}};
    const auto t = find_targets(f);
    CHECK(t[0].switches == std::vector<std::uint32_t>{1});
    CHECK(t[1].links.size() == 1);
}

TEST_CASE("a leaf that is off is told, and counts as no defect", "[draw]") {
    auto f = clos(1, 2, 2, 1, 1);
    const auto leaf = f.switches[0].name;
    f.defects = {{"off", {leaf}, "no host is on it", 0.9}};
    auto svg = to_svg(f, nullptr, "Off");
    CHECK(svg.find("no defects") != std::string::npos);
    CHECK(svg.find("1 defect") == std::string::npos);
    CHECK(svg.find("1 leaf without a host: " + leaf) != std::string::npos);
    CHECK(to_html(f, nullptr, "Off").find("\"all_defects\":0") != std::string::npos);
    f.defects.push_back({"missing-rail", {"n00002"}, "one HCA", 1});
    svg = to_svg(f, nullptr, "Off");
    CHECK(svg.find("1 defect<") != std::string::npos);
    CHECK(svg.find("2 defects") == std::string::npos);
    CHECK(to_html(f, nullptr, "Off").find("\"all_defects\":1") != std::string::npos);
}

TEST_CASE("cores, spines and spine groups stand apart", "[draw]") {
    const auto f = banyan::topo::test::model_of("ibnetdiscover-3level-sharp.txt");
    const auto s = make_scene(f);
    CHECK(s.cores.size() == 4);
    REQUIRE(s.spine_groups.size() == 2);
    for (const auto& p : s.spine_groups) {
        CHECK(p.spines.size() == 4);
        CHECK(p.groups.size() == 1);
    }
    CHECK(s.stray.empty());
}

TEST_CASE("planes of a box are one switch", "[draw]") {
    auto f = clos(1, 2, 2, 2, 1);  // leaves 0 and 1, spines 2 and 3
    f.switches[1].box = 0;
    f.leaf_groups[0].leaves = {0};
    f.defects = {{"missing-uplink", {f.switches[1].name}, "", 1}};
    const auto s = make_scene(f);
    CHECK(s.stray.empty());
    REQUIRE(s.bundles.size() == 2);
    CHECK(s.bundles[0].count == 2);
    CHECK(s.switches[0] == health::broken);
    CHECK(s.groups[0] == health::good);
    CHECK(s.defects_of_group[0] == 1);
    CHECK(unpack(nlohmann::json::parse(page_data(f, nullptr, ""))["switches"]["box"]) ==
          std::vector<std::uint64_t>{1, 1, 3, 4});
}

TEST_CASE("text from the wire becomes harmless", "[draw]") {
    CHECK(clean("n01 mlx5_0") == "n01 mlx5_0");
    CHECK(clean("a\x01"
                "b\xff") == "a\ufffdb\ufffd");
    CHECK(clean("\xc0\xaf\xed\xa0\x80") == "\ufffd\ufffd\ufffd\ufffd\ufffd");  // overlong, surrogate
    CHECK(clean("a\u202eb\u2028") == "a\ufffdb\ufffd");
    CHECK(clean("\xe2\x82") == "\ufffd\ufffd");
    CHECK(escape_markup("<a href='x'>\"&") == "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
    CHECK(escape_script("{\"a\":\"</script>&\"}") == "{\"a\":\"\\u003c/script\\u003e\\u0026\"}");
    CHECK(fit("leaf-0001", 5) == "leaf\u2026");
    CHECK(fit("leaf", 4) == "leaf");
    CHECK(fit("\u8449\u8449\u8449", 5) == "\u8449\u8449\u2026");
    CHECK(fit("x", 0).empty());
    CHECK(columns("e\u0301\u8449\U0001f680") == 5);  // a mark that combines, two wide ones
    CHECK(columns("\U0001f650\u231a") == 3);         // an ornament, and an emoji below U+1F300
    CHECK(fill("\U0001f680x", 4) == "\U0001f680x ");
    CHECK(fill("leaf", 3) == "leaf");
    CHECK(short_name("MF0;leaf-01:MQM9790/U1") == "leaf-01");
    CHECK(short_name("Quantum Mellanox Technologies") == "Quantum Mellanox Technologies");
    CHECK(short_name(";:") == ";:");
    CHECK(card_name("MF0;dir1:CS8500/L03/U2") == "L03/U2");
    CHECK(card_name("MF0;leaf-01:MQM9790/U1").empty());
    CHECK(card_name("a/L").empty());
}

TEST_CASE("columns are even and rows are filled", "[draw]") {
    CHECK(even_columns(400, 19, 30) == 20);
    CHECK(even_columns(8, 3, 100) == 4);
    CHECK(even_columns(1, 7, 100) == 1);
    CHECK(even_columns(0, 0, 1) == 1);
    const auto s = arrange_in_rows({{10, 10}, {10, 10}, {10, 20}}, 25, 25, 5, 5, true);
    CHECK(s.rows == 2);
    CHECK(s.height == 10 + 5 + 20);
}

TEST_CASE("nothing overlaps, at any size", "[draw]") {
    const auto [groups, hosts, rails] =
        GENERATE(Catch::Generators::table<std::uint32_t, std::uint32_t, std::uint32_t>(
            {{1, 1, 1}, {2, 8, 8}, {2, 32, 8}, {8, 8, 1}, {5, 18, 4}, {40, 18, 4}, {90, 32, 8}}));
    CAPTURE(groups, hosts, rails);
    const auto f = clos(groups, hosts, rails, 4, 1);
    const auto at = lay_out(f, make_scene(f), 100, true);
    std::vector<box> boxes;
    for (const auto& p : at.spine_groups) {
        boxes.push_back(p.bar);
        for (const auto& g : p.groups) {
            boxes.push_back(g.at);
            std::vector<box> inside;
            for (const auto& l : g.leaves) inside.push_back(l.at);
            for (const auto& h : g.hosts) inside.push_back(h.at);
            check_apart(inside);
            for (const auto& b : inside)
                CHECK((b.x >= g.at.x && b.right() <= g.at.right() && b.y >= g.at.y &&
                       b.bottom() <= g.at.bottom()));
        }
    }
    check_apart(boxes);
    for (const auto& b : boxes) CHECK((b.x >= 0 && b.right() <= at.width && b.bottom() <= at.bottom));
}

TEST_CASE("what is lost is told first, and names last", "[draw]") {
    auto f = clos(2, 4, 2, 2, 1);
    f.defects.push_back({"factory-name", {f.switches[0].name}, "no name", 1, {}});
    f.defects.push_back({"off", {f.switches[1].name}, "no host", 1, {}});
    f.defects.push_back({"swapped-cables", {f.hcas[0].name, f.hcas[2].name}, "crossed", 1, {}});
    f.defects.push_back({"missing-uplink", {f.switches[1].name}, "1 of 2 links missing", 1, {}});
    CHECK(in_order(make_scene(f)) == std::vector<std::size_t>{3, 2, 0, 1});
    for (const auto& picture : {to_svg(f, nullptr, ""), to_html(f, nullptr, "")}) {
        // The page's script has none of these words.
        CHECK(picture.find("missing-uplink") < picture.find("swapped-cables"));
        CHECK(picture.find("swapped-cables") < picture.find("factory-name"));
    }
}

TEST_CASE("one lost uplink paints its leaf, and nothing that it stands in", "[draw]") {
    // Folded groups, each with one line to its spines.
    auto f = clos(6, 32, 4, 4, 1);
    const auto leaf = f.leaf_groups[2].leaves[1];
    std::erase_if(f.links, [&](const auto& l) {
        return (l.a.kind == node_kind::switch_node && l.a.index == leaf &&
                l.b.kind == node_kind::switch_node && l.b.index == 24) ||
               (l.b.kind == node_kind::switch_node && l.b.index == leaf &&
                l.a.kind == node_kind::switch_node && l.a.index == 24);
    });
    f.defects.push_back({"missing-uplink", {f.switches[leaf].name}, "1 of 4 links missing", 0.9, {}});
    const auto s = make_scene(f);
    CHECK(s.switches[leaf] == health::broken);
    CHECK(std::count(s.switches.begin(), s.switches.end(), health::good) ==
          static_cast<std::ptrdiff_t>(f.switches.size()) - 1);
    CHECK(std::count(s.groups.begin(), s.groups.end(), health::good) == 6);
    CHECK(s.defects_of_group == std::vector<std::uint32_t>{0, 0, 1, 0, 0, 0});
    REQUIRE(std::any_of(s.bundles.begin(), s.bundles.end(),
                        [&](const bundle& b) { return b.low == leaf && b.state == health::broken; }));
    const auto svg = to_svg(f, nullptr, "");
    const std::string red = "#c8372d";
    for (auto at = svg.find("<path class=\"l\""); at != std::string::npos;
         at = svg.find("<path class=\"l\"", at + 1)) {
        const auto line = svg.substr(at, svg.find("/>", at) - at);
        // The legend's own sample is dashed.
        if (line.find("dasharray") == std::string::npos) CHECK(line.find(red) == std::string::npos);
    }
}

TEST_CASE("the SVG of a small fabric is as it was", "[draw]") {
    const auto f = small_damaged();
    const auto j = small_job(f);
    const auto svg = to_svg(f, &j, "Small");
    const std::string file = banyan::testing::fixture("draw/small.svg");
    if (std::getenv("BANYAN_UPDATE_GOLDEN")) REQUIRE(banyan::write_file_atomic(file, svg));
    const auto golden = banyan::read_file(file, 1 << 20);
    REQUIRE(golden);
    CHECK((svg == *golden));  // not the diff: it would be a page of markup
    CHECK(xml_error(svg).empty());
    CHECK(svg.find("1 of 2") != std::string::npos);
}

TEST_CASE("hostile names end neither picture", "[draw]") {
    auto f = small_damaged();
    const std::vector<std::string> names{"</script><script>alert(1)</script>",
                                         "\"'><img src=x onerror=alert(1)>",
                                         "]]>&lt;<!--",
                                         "\xff\xfe\x80 broken \x01\x1b[31m",
                                         "{{data}}{{script}}",
                                         "\u202e\u2066 back",
                                         std::string(64, '<')};
    for (std::size_t i = 0; i < f.hcas.size(); ++i) f.hcas[i].name = names[i % names.size()];
    for (std::size_t i = 0; i < f.switches.size(); ++i) f.switches[i].name = names[(i + 1) % names.size()];
    for (std::size_t i = 0; i < f.hosts.size(); ++i) f.hosts[i].name = names[(i + 2) % names.size()];
    f.defects.push_back({names[0], names, names[1], 1});
    f.excluded.emplace_back().kind = names[0];
    auto j = small_job(f);
    j.text = names[0];
    j.colors = names;
    for (auto& m : j.marks) m.label = m.about = names[0];
    for (const auto& title : names) {
        const auto svg = to_svg(f, &j, title);
        CHECK(xml_error(svg) == "");
        CHECK(count(svg, "<script") == 0);
        CHECK(count(svg, "<img") == 0);
        const auto html = to_html(f, &j, title);
        CHECK(count(html, "<script") == 2);
        CHECK(count(html, "</script") == 2);
        CHECK(count(html, "<img") == 0);
        CHECK(count(html, "{{script}}") == count(html, "{{data}}{{script}}"));  // names only: no part is left
        const auto begin = html.find("id=\"data\">") + 10;
        const auto data =
            nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin), nullptr, false);
        REQUIRE(data.is_object());
        CHECK(data["title"] == clean(title));
    }
}

TEST_CASE("empty and odd fabrics are drawn too", "[draw]") {
    for (const auto& f :
         {fabric{}, banyan::topo::test::groups_of({3, 1}, 1), clos(1, 1, 1, 0, 0), clos(3, 0, 2, 1, 1)}) {
        CHECK(xml_error(to_svg(f, nullptr, "")) == "");
        CHECK(nlohmann::json::accept(page_data(f, nullptr, "")));
    }
}

TEST_CASE("columns of numbers survive packing", "[draw]") {
    const std::vector<std::uint64_t> numbers{0, 0, 0, 5, 6, 7, 8, 3, UINT64_MAX, UINT64_MAX, 1, 1u << 31};
    CHECK(unpack(pack(numbers)) == numbers);
    CHECK(pack({7, 7, 7, 7}) == "7 0*3");
    CHECK(pack({1, 2, 3, 1}) == "1*3 -2");
    CHECK(pack({}).empty());
}

TEST_CASE("12,800 hosts with 8 HCAs are a few megabytes, twice the same", "[draw]") {
    const auto f = clos(400, 32, 8, 32, 1);
    REQUIRE(f.hcas.size() == 102'400);
    const auto svg = to_svg(f, nullptr, "Large");
    CHECK(svg.size() < 1'500'000);
    CHECK(xml_error(svg) == "");
    CHECK((svg == to_svg(f, nullptr, "Large")));
    const auto data = page_data(f, nullptr, "Large");
    CHECK(data.size() < 3'000'000);
    const auto j = nlohmann::json::parse(data);
    const auto guids = unpack(j["hcas"]["guid"]);
    REQUIRE(guids.size() == f.hcas.size());
    CHECK(guids.back() == f.hcas.back().id);
    CHECK(unpack(j["links"]["b"]).size() == 3200 * 32);
}

TEST_CASE("a job is coloured by unit or by a dimension", "[draw]") {
    const auto f = clos(2, 4, 2, 1, 1);
    const auto r = banyan::topo::test::make("tp=2,pp=2,dp=4", 8);
    const auto by_unit = job_of(f, r, banyan::topo::test::all_hosts(f), {}, "unit").value();
    CHECK(by_unit.colors.size() == 4);
    CHECK(by_unit.marks[0].label == "A0");
    const auto by_pp = job_of(f, r, banyan::topo::test::all_hosts(f), {}, "pp").value();
    CHECK(by_pp.colors == std::vector<std::string>{"pp 0", "pp 1"});
    CHECK_FALSE(job_of(f, r, banyan::topo::test::all_hosts(f), {}, "rainbow"));

    const std::vector<std::string> nodes{"n00001", "gone"}, spares{"n00003"};
    const auto from_plan = job_of(f, banyan::topo::test::make("tp=2,dp=2", 2), nodes, spares, "unit").value();
    CHECK(from_plan.marks.size() == 2);
    CHECK(from_plan.marks.back().spare);
    CHECK(from_plan.text.find("1 host not on the fabric") != std::string::npos);
}

}  // namespace test_draw
