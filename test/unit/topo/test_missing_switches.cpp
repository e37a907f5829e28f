// SPDX-License-Identifier: BSD-3-Clause
//
// Switches that are off: one defect each, that names it, and nothing of what was built so.
#include <algorithm>

#include <banyan/topo/reader.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"
#include "topo/generate/generate.hpp"
#include "topo/model/row_names.hpp"

namespace test_missing_switches {

using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

/// Hosts on ports 1 to 6 of each leaf, uplinks from port 9 on, spines that are called as `called` says.
struct tree : dump_writer {
    explicit tree(unsigned groups, std::vector<std::string> called, unsigned links = 1) {
        for (const auto& name : called) spines.push_back(add_switch(name));
        for (unsigned g = 0; g < groups; ++g) {
            const auto leaf = add_switch(fmt::format("tor-{}", g + 1));
            leaves.push_back(leaf);
            for (unsigned h = 0; h < 6; ++h)
                link(add_hca(fmt::format("c{:02} mlx5_0", g * 6 + h)), 1, leaf, h + 1);
            for (unsigned s = 0; s < called.size(); ++s)
                for (unsigned k = 0; k < links; ++k)
                    link(leaf, 9 + s * links + k, spines[s], 1 + g * links + k);
        }
    }
    /// Takes a spine out with all its cables.
    void kill(unsigned s, unsigned links = 1) {
        for (std::size_t g = 0; g < leaves.size(); ++g)
            for (unsigned k = 0; k < links; ++k) forget(leaves[g], 9 + s * links + k);
        remove(spines[s]);
    }
    std::vector<guid> leaves, spines;
};

/// The text without a switch: its record is gone, and so are the lines that name it.
std::string without(const std::string& text, const std::string& name) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find("\n\n", at), text.size() - 2) + 2;
        const auto record = text.substr(at, end - at);
        const auto head = record.find("\nSwitch");
        const auto title =
            head == std::string::npos ? "" : record.substr(head, record.find('\n', head + 1) - head);
        at = end;
        if (title.find(name + '"') != std::string::npos || title.find(name + ':') != std::string::npos)
            continue;
        for (std::size_t line = 0; line < record.size();) {
            const auto stop = record.find('\n', line) + 1;
            const auto one = record.substr(line, stop - line);
            if (!one.starts_with('[') ||
                (one.find(name + '"') == std::string::npos && one.find(name + ':') == std::string::npos))
                out += one;
            line = stop;
        }
    }
    return out;
}

std::vector<defect> defects_of(const std::string& text) {
    auto out = build_fabric(read_ibnetdiscover(text).value()).defects;
    for (const auto& d : out) UNSCOPED_INFO(d.kind << " " << d.objects.at(0) << ": " << d.evidence);
    return out;
}

void check_only(const std::vector<defect>& found, const std::string& object, std::size_t cables) {
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == "missing-switch");
    CHECK(found[0].objects == std::vector{object});
    CHECK(found[0].where.size() == cables);
}

}  // namespace

TEST_CASE("numbers in names show which one is missing", "[topo]") {
    using banyan::topo::build::name_in_row;
    const auto hole = name_in_row({{0, "sp-r2-08"}, {1, "sp-r2-09"}, {3, "sp-r2-11"}}, 2);
    CHECK(hole.name == "sp-r2-10");
    CHECK(hole.shows == 1);
    CHECK(name_in_row({{0, "a1"}, {1, "a2"}, {3, "a3"}}, 2).shows == -1);
    CHECK(name_in_row({{0, "a2"}, {1, "a3"}, {2, "a4"}}, -1).shows == 1);
    CHECK(name_in_row({{0, "a2"}, {1, "a3"}, {2, "a4"}}, -1).name == "a1");
    CHECK(name_in_row({{0, "a5"}, {1, "a6"}, {2, "a7"}}, -1).shows == 0);
    CHECK(name_in_row({{0, "a5"}, {1, "a6"}, {2, "a7"}}, 3).shows == 0);
    CHECK(name_in_row({{0, "S01/U1"}, {1, "S01/U2"}, {3, "S02/U2"}}, 2).name == "S02/U1");
    CHECK(name_in_row({{0, "S01/U1"}, {1, "S01/U2"}, {3, "S02/U2"}}, 2).shows == 1);
    CHECK(name_in_row({{0, "a1b1"}, {1, "a2b2"}, {3, "a4b4"}}, 2).name == "a3b3");
    CHECK(name_in_row({{0, "a1b1"}, {1, "a5b2"}, {3, "a2b7"}}, 2).name.empty());
    // Where the second number ends cannot be known.
    CHECK(name_in_row({{0, "c1-01"}, {1, "c1-03"}, {2, "c2-02"}, {3, "c2-04"}}, 4).name.empty());
    // Stretches that are numbered anew.
    CHECK(name_in_row({{0, "c1-43"}, {1, "c1-45"}, {3, "c1-49"}, {4, "c2-44"}, {5, "c2-46"}}, 2).name ==
          "c1-47");
    CHECK(
        name_in_row({{0, "c1-43"}, {1, "c1-45"}, {2, "c1-47"}, {4, "c2-44"}, {5, "c2-46"}}, 3).name.empty());
    CHECK(name_in_row({{0, "ash"}, {1, "elm"}, {3, "oak"}}, 2).name.empty());
}

TEST_CASE("a spine that is off among all leaves' spines", "[topo]") {
    const std::vector<std::string> names{"agg-1", "agg-2", "agg-3", "agg-4", "agg-5", "agg-6"};
    SECTION("one") {
        tree t(4, names, 2);
        REQUIRE(t.model().defects.empty());
        const auto dead = GENERATE(1u, 2u, 4u);
        t.kill(dead, 2);
        check_only(defects_of(t.text()), names[dead], 8);
    }
    SECTION("two") {
        tree t(4, names);
        t.kill(1);
        t.kill(3);
        const auto found = defects_of(t.text());
        REQUIRE(found.size() == 2);
        CHECK(found[0].objects == std::vector<std::string>{"agg-2"});
        CHECK(found[1].objects == std::vector<std::string>{"agg-4"});
    }
    SECTION("names that tell nothing") {
        tree t(4, {"oak", "elm", "ash", "fir", "yew", "box"});
        t.kill(3);
        check_only(defects_of(t.text()), "a spine", 4);
    }
    SECTION("the ports have the hole by design, as the names show") {
        tree t(4, {"agg-1", "agg-2", "", "agg-3", "agg-4", "agg-5"});
        t.kill(2);
        CHECK(defects_of(t.text()).empty());
    }
    SECTION("the names have the hole, and no port is free for it") {
        CHECK(defects_of(tree(4, {"agg-1", "agg-2", "agg-4", "agg-5", "agg-6"}).text()).empty());
    }
    SECTION("what is free is at the end") {
        tree t(4, names);
        t.kill(5);
        CHECK(defects_of(t.text()).empty());
    }
    SECTION("several holes are a way to use every second port") {
        tree t(4, {"oak", "", "elm", "", "ash", "", "fir", "yew"});
        for (const auto s : {1u, 3u, 5u}) t.kill(s);
        CHECK(defects_of(t.text()).empty());
    }
}

TEST_CASE("every second spine is off, or its ports are spare", "[topo]") {
    const std::string odd = GENERATE("agg-2", "agg-x");
    tree t(4, {"agg-1", odd, odd == "agg-2" ? "agg-3" : "agg-2", "agg-4", odd == "agg-2" ? "agg-5" : "agg-3"},
           2);
    t.kill(1, 2);
    t.kill(3, 2);
    CHECK(std::ranges::count(defects_of(t.text()), "missing-switch", &defect::kind) ==
          (odd == "agg-2" ? 2 : 0));
}

TEST_CASE("a spine of one rail that is off", "[topo]") {
    generate::options o;
    o.hosts = 32, o.group_size = 8, o.rails = 4, o.spines = 3, o.radix = 32, o.rail_only = true;
    const auto text = generate::generate(o).value().text;
    REQUIRE(defects_of(text).empty());
    const unsigned dead = GENERATE(1u, 5u, 6u, 8u, 12u);
    const auto name = fmt::format("spine-{:02}", dead);
    const auto found = defects_of(without(text, name));
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == "missing-switch");
    CHECK(found[0].evidence.starts_with(fmt::format("rail {}: 4 leaves have ", (dead - 1) / 3)));
    // Two names show any step.
    if (dead % 3 != 1)
        CHECK((found[0].objects[0] == name || found[0].objects[0].starts_with("a spine of rail")));
}

TEST_CASE("a spine under cores, and a core, that are off", "[topo]") {
    generate::options o;
    o.hosts = 64, o.group_size = 8, o.rails = 2, o.levels = 3, o.spine_group_size = 2, o.radix = 16,
    o.spines = 4;
    const auto text = generate::generate(o).value().text;
    REQUIRE(defects_of(text).empty());
    const auto sound = build_fabric(read_ibnetdiscover(text).value());
    const auto links_of = [&](const std::string& name) {
        std::size_t out = 0;
        for (const auto& l : sound.links)
            for (const auto& e : {l.a, l.b})
                if (e.kind == node_kind::switch_node)
                    out += sound.switches[e.index].name.find(name) != std::string::npos;
        return out;
    };
    const auto* const name = GENERATE("spine-02", "spine-07", "core-01", "core-06");
    const auto found = defects_of(without(text, name));
    REQUIRE(links_of(name) > 0);
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == "missing-switch");
    CHECK(found[0].where.size() == links_of(name));
}

}  // namespace test_missing_switches
