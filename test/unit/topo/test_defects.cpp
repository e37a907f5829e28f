// SPDX-License-Identifier: BSD-3-Clause
//
// Each kind of defect, put into a sound fabric alone: it is found, it is named, and nothing else is.
#include <algorithm>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"

namespace test_defects {

using namespace banyan::topo;
using namespace banyan::topo::test;

namespace {

using objects = std::vector<std::string>;

/// The only defect of the fabric.
defect only_defect(const dump_writer& d) {
    const auto f = d.model();
    for (const auto& each : f.defects)
        UNSCOPED_INFO(each.kind + " " + each.objects.at(0) + ": " + each.evidence);
    REQUIRE(f.defects.size() == 1);
    CHECK(f.hosts.size() == 24);
    CHECK(f.leaf_groups.size() == 3);
    return f.defects[0];
}

}  // namespace

TEST_CASE("defects are found and named", "[topo]") {
    rail_fabric d(3, 8, 4, 4);
    REQUIRE(d.model().defects.empty());

    SECTION("cables of one host exchanged between rails") {
        d.link(d.hcas[1][2][0], 1, d.leaves[1][3], 3);
        d.link(d.hcas[1][2][3], 1, d.leaves[1][0], 3);
        const auto found = only_defect(d);
        CHECK(found.kind == "swapped-cables");
        CHECK(found.objects == objects{"g1n02 mlx5_0", "g1n02 mlx5_3"});
    }
    SECTION("cables of two hosts exchanged on one rail") {
        d.link(d.hcas[1][2][1], 1, d.leaves[1][1], 6);
        d.link(d.hcas[1][5][1], 1, d.leaves[1][1], 3);
        const auto found = only_defect(d);
        CHECK(found.kind == "swapped-cables");
        CHECK(found.objects == objects{"g1n02 mlx5_1", "g1n05 mlx5_1"});
    }
    SECTION("cables of two groups exchanged") {
        d.link(d.hcas[0][2][1], 1, d.leaves[2][1], 3);
        d.link(d.hcas[2][2][1], 1, d.leaves[0][1], 3);
        CHECK(only_defect(d).kind == "swapped-cables");
    }
    SECTION("an HCA on a leaf of another group") {
        d.forget(d.leaves[0][1], 3);
        d.link(d.hcas[0][2][1], 1, d.leaves[2][1], 20);
        const auto found = only_defect(d);
        CHECK(found.kind == "foreign-leaf");
        CHECK(found.objects == objects{"g0n02 mlx5_1"});
    }
    SECTION("an HCA on another rail of its group") {
        d.forget(d.leaves[0][1], 3);
        d.link(d.hcas[0][2][1], 1, d.leaves[0][2], 20);
        CHECK(only_defect(d).kind == "wrong-rail");
    }
    SECTION("a leaf lacks a link to one spine") {
        d.forget(d.leaves[0][1], 34);
        d.forget(d.spines[1], 2);
        const auto found = only_defect(d);
        CHECK(found.kind == "missing-uplink");
        CHECK(found.objects == objects{"leaf-0-1"});
        // Of all links that the leaf should have, not of those to the spines it lost.
        CHECK(found.evidence == "1 of 4 links missing, to spine-1");
    }
    SECTION("a leaf without any uplink") {
        for (unsigned s = 0; s < 4; ++s) {
            d.forget(d.leaves[0][1], 33 + s);
            d.forget(d.spines[s], 2);
        }
        CHECK(only_defect(d).kind == "missing-uplink");
    }
    SECTION("a spine lacks links to several leaves") {
        for (const unsigned g : {0u, 1u, 2u}) {
            d.forget(d.leaves[g][3], 33 + 2);
            d.forget(d.spines[2], 1 + g * 4 + 3);
        }
        const auto found = only_defect(d);
        CHECK(found.kind == "asymmetric-spine");
        CHECK(found.objects == objects{"spine-2"});
        CHECK(found.evidence == "3 of 12 links missing, to leaf-0-3, leaf-1-3, leaf-2-3");
    }
    SECTION("lanes down") {
        d.link(d.hcas[0][2][1], 1, d.leaves[0][1], 3, "2xNDR");
        const auto found = only_defect(d);
        CHECK(found.kind == "narrow-link");
        CHECK(found.objects.size() == 2);
        CHECK(std::count(found.objects.begin(), found.objects.end(), "g0n02 mlx5_1 port 1") == 1);
    }
    SECTION("a slow link between switches") {
        d.link(d.leaves[0][1], 33, d.spines[0], 2, "4xHDR");
        CHECK(only_defect(d).kind == "slow-link");
    }
    SECTION("an HCA that answers but has no link") {
        d.forget(d.leaves[0][1], 3);
        d.forget(d.hcas[0][2][1], 1);
        const auto found = only_defect(d);
        CHECK(found.kind == "missing-rail");
        CHECK(found.objects == objects{"g0n02"});
    }
    SECTION("a link that one end does not list") {
        d.forget(d.spines[0], 2);
        CHECK(only_defect(d).kind == "one-way-link");
    }
}

TEST_CASE("a leaf that is gone with all of its cables", "[topo]") {
    const auto text = rail_fabric(3, 8, 4, 4).text();
    const auto f = [&] {
        std::string out;
        // Drops the leaf's record, the lines that lead to it, and the records of HCAs that nothing else
        // reaches.
        for (std::size_t at = 0; at < text.size();) {
            auto end = text.find("\n\n", at);
            end = end == std::string::npos ? text.size() : end + 1;
            const auto record = text.substr(at, end - at);
            at = end;
            if (record.find("# \"leaf-1-2\" enhanced") != std::string::npos) continue;
            if (record.find("Ca\t") != std::string::npos && record.find("\"leaf-1-2\"") != std::string::npos)
                continue;
            for (std::size_t line = 0; line < record.size();) {
                const auto stop = std::min(record.find('\n', line), record.size() - 1) + 1;
                const auto words = record.substr(line, stop - line);
                line = stop;
                if (words.find("\"leaf-1-2\"") == std::string::npos) out += words;
            }
        }
        return build_fabric(banyan::topo::read_ibnetdiscover(out).value());
    }();
    for (const auto& each : f.defects)
        UNSCOPED_INFO(each.kind + " " + each.objects.at(0) + ": " + each.evidence);
    REQUIRE(f.defects.size() == 1);
    CHECK(f.defects[0].kind == "missing-leaf");
    CHECK(f.defects[0].objects == objects{"leaf-1-0", "leaf-1-1", "leaf-1-3"});
}

TEST_CASE("two HCAs with one name: the one that sits elsewhere goes to the host whose place it has",
          "[topo]") {
    rail_fabric d(2, 8, 4, 2);
    auto text = d.text();
    const auto replace = [&](const std::string& what, const std::string& with) {
        for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
            text.replace(at, what.size(), with);
    };
    replace("\"g1n05 mlx5_2\"", "\"g0n03 mlx5_2\"");
    const auto f = build_fabric(read_ibnetdiscover(text).value());
    REQUIRE(f.defects.size() == 1);
    CHECK(f.defects[0].kind == "duplicate-name");
    CHECK(f.hosts[find_host(f, "g1n05")].hcas.size() == 4);
    CHECK(f.hosts[find_host(f, "g0n03")].hcas.size() == 4);
}

TEST_CASE("a host that is called as an installer's image calls it", "[topo]") {
    rail_fabric d(2, 8, 4, 2);
    auto text = d.text();
    for (std::size_t at = 0; (at = text.find("g1n05 ", at)) != std::string::npos;)
        text.replace(at, 6, "localhost ");
    const auto f = build_fabric(read_ibnetdiscover(text).value());
    CHECK(find_host(f, "localhost") == none);
    CHECK(f.excluded.size() == 4);
    CHECK(f.defects.size() == 4);
    for (const auto& each : f.defects) CHECK(each.kind == "factory-name");
}

TEST_CASE("no leaf is missing where half of the hosts have fewer HCAs", "[topo]") {
    rail_fabric d(4, 8, 4, 4);
    for (unsigned h = 0; h < 4; ++h)
        for (const unsigned r : {2u, 3u}) {
            d.forget(d.hcas[1][h][r], 1);
            d.forget(d.leaves[1][r], h + 1);
        }
    auto text = d.text();
    // The HCAs are not there at all.
    for (unsigned h = 0; h < 4; ++h)
        for (const unsigned r : {2u, 3u}) {
            const auto head = text.find(fmt::format("\"H-{:016x}\"\t\t#", d.hcas[1][h][r]));
            REQUIRE(head != std::string::npos);
            const auto begin = text.rfind("\n\n", head), end = text.find("\n\n", head);
            text.erase(begin, (end == std::string::npos ? text.size() - 1 : end) - begin);
        }
    const auto f = build_fabric(read_ibnetdiscover(text).value());
    for (const auto& x : f.defects) UNSCOPED_INFO(x.kind + ": " + x.evidence);
    CHECK(f.defects.empty());
    for (const auto& h : f.hosts) CHECK_FALSE(h.slow);
}

}  // namespace test_defects
