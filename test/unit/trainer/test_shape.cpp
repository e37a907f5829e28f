// SPDX-License-Identifier: BSD-3-Clause
//
// Shapes, coordinates, groups; and that the cut of the model does not change its weights.
#include <catch2/catch.hpp>

#include "examples/trainer/failure.hpp"
#include "examples/trainer/model/stage.hpp"
#include "examples/trainer/model/state.hpp"
#include "examples/trainer/shape.hpp"

namespace test_shape {

using namespace trainer;

namespace {

std::vector<coordinates> places_of(const shape& s) {
    std::vector<coordinates> out;
    for (std::uint32_t r = 0; r < s.ranks(); ++r) out.push_back(s.place(r));
    return out;
}

identity identity_of(const char* text, std::uint32_t rank) {
    const auto s = parse_shape(text);
    identity out;
    out.rank = rank;
    out.world = s.ranks();
    out.sizes = s.sizes;
    out.place = s.place(rank);
    out.shape_text = text;
    return out;
}

}  // namespace

TEST_CASE("the first axis is the innermost", "[trainer]") {
    const auto s = parse_shape("tp=2,pp=2,dp=4");
    REQUIRE(s.ranks() == 16);
    CHECK(s.place(1)[axis::tp] == 1);
    CHECK(s.place(2)[axis::pp] == 1);
    CHECK(s.place(13)[axis::tp] == 1);
    CHECK(s.place(13)[axis::pp] == 0);
    CHECK(s.place(13)[axis::dp] == 3);
}

TEST_CASE("groups are in the order of their coordinate", "[trainer]") {
    const auto places = places_of(parse_shape("dp=4,tp=2,pp=2"));
    CHECK(group_along(places, 5, axis::dp) == std::vector<std::uint32_t>{4, 5, 6, 7});
    CHECK(group_along(places, 5, axis::tp) == std::vector<std::uint32_t>{1, 5});
    CHECK(group_along(places, 5, axis::pp) == std::vector<std::uint32_t>{5, 13});
}

TEST_CASE("wrong shapes are refused", "[trainer]") {
    for (const auto* text : {"", "tp", "tp=", "tp=0", "tp=2,tp=2", "xp=2", "tp=2,", "tp=-1", "tp=4294967297",
                             "tp=2x", "tp=1048576,dp=2"})
        CHECK_THROWS_AS(parse_shape(text), failure);
}

TEST_CASE("two ranks at one place, or one outside, are refused", "[trainer]") {
    const auto s = parse_shape("tp=2,dp=2");
    auto places = places_of(s);
    CHECK_NOTHROW(check_places(places, s.sizes));
    places[3] = places[0];
    CHECK_THROWS_AS(check_places(places, s.sizes), failure);
    places[3][axis::dp] = 7;
    CHECK_THROWS_AS(check_places(places, s.sizes), failure);
}

TEST_CASE("what this trainer cannot do is refused", "[trainer]") {
    task work;
    CHECK_NOTHROW(check(work, identity_of("tp=2,pp=2,dp=4", 0)));
    CHECK_THROWS_AS(check(work, identity_of("tp=2,cp=2", 0)), failure);
    CHECK_THROWS_AS(check(work, identity_of("ep=2", 0)), failure);
    CHECK_THROWS_AS(check(work, identity_of("pp=3", 0)), failure);
    work.hidden = 3;
    CHECK_THROWS_AS(check(work, identity_of("tp=4", 0)), failure);
}

TEST_CASE("a weight is the same however the model is cut", "[trainer]") {
    task work;
    work.hidden = 4;
    work.layers = 2;
    const auto whole = initial_weights(work, identity_of("dp=1", 0));
    const auto cut =
        initial_weights(work, identity_of("tp=2,pp=2", 3));  // second half of the units, second layer
    const std::size_t layer = 2 * 4 * 8 + 8;
    const auto second = std::vector<float>(whole.begin() + layer, whole.end());
    for (std::size_t unit = 0; unit < 4; ++unit)
        for (std::size_t j = 0; j < 4; ++j) {
            CHECK(cut[unit * 4 + j] == second[(unit + 4) * 4 + j]);
            CHECK(cut[16 + j * 4 + unit] == second[32 + j * 8 + unit + 4]);
        }
}

TEST_CASE("padding brings the state to its size and tells a torn save", "[trainer]") {
    task work;
    work.hidden = 16;
    work.state_bytes = 100'000;
    const auto self = identity_of("tp=2", 1);
    auto s = initial_state(work, self);
    CHECK(s.bytes() <= 100'000);
    CHECK(s.bytes() > 100'000 - 8);
    const auto before = s.padding;
    advance(s, self);
    CHECK(s.padding != before);
    CHECK_NOTHROW(check_padding(s, self));
    SECTION("a page of an older step") { s.padding[512] = before[512]; }
    SECTION("a changed word") { s.padding[7] ^= 1; }
    SECTION("another step") { ++s.count.step; }
    CHECK_THROWS_AS(check_padding(s, self), failure);
}

}  // namespace test_shape
