// SPDX-License-Identifier: BSD-3-Clause
#include <set>

#include <banyan/topo/shape.hpp>
#include <catch2/catch.hpp>

namespace test_shape {

using namespace banyan;
using namespace banyan::topo;

TEST_CASE("coordinates follow the order that was written", "[topo]") {
    const auto s = parse_shape("tp=2,pp=3,dp=4").value();
    CHECK(s.ranks() == 24);
    CHECK(s.text() == "tp=2,pp=3,dp=4");
    CHECK(s.size(dimension::ep) == 1);
    const auto at = s.coordinates(1 + 2 * (2 + 3 * 3));
    CHECK(at == by_dimension<std::uint32_t>{1, 0, 0, 2, 3});
    const auto outermost = parse_shape("tp=2,dp=4,pp=3").value().coordinates(23);
    CHECK(outermost == by_dimension<std::uint32_t>{1, 0, 0, 2, 3});
}

TEST_CASE("every rank has coordinates of its own", "[topo]") {
    for (const auto* text : {"tp=4,cp=2,ep=3,pp=2,dp=5", "dp=7,tp=3", "pp=1", "ep=8,dp=8"}) {
        const auto s = parse_shape(text).value();
        std::set<by_dimension<std::uint32_t>> seen;
        for (std::uint32_t rank = 0; rank < s.ranks(); ++rank) seen.insert(s.coordinates(rank));
        CHECK(seen.size() == s.ranks());
    }
}

TEST_CASE("what is refused names itself", "[topo]") {
    CHECK(parse_shape("tp=2,tp=2").error().what == "dimension tp is given twice");
    CHECK(parse_shape("tpp=2").error().hint == "did you mean tp?");
    CHECK(parse_shape("tp=1048576,dp=2").error().what.find("more than 1048576 ranks") != std::string::npos);
    CHECK(parse_shape("tp=1000000000000000000").error().what.find("is not a size") != std::string::npos);
    CHECK_FALSE(parse_shape(std::string(300, 'a')));
}

}  // namespace test_shape
