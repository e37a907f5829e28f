// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "fixtures.hpp"

namespace test_swap {

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;

TEST_CASE("every other slot keeps its node, and the spare is no spare any more", "[topo]") {
    const auto f = groups_of({8, 8});
    const auto r = make("pp=2,dp=4", 9, 1);
    const auto before = place(f, all_hosts(f), r).value();
    const std::vector<std::uint32_t> lost{before.nodes[3]};
    const auto after = swap(f, before, lost, before.spares).value();
    CHECK(after.nodes[3] == before.spares[0]);
    CHECK(after.spares.empty());
    CHECK(after.buddies == before.buddies);
    for (std::size_t slot = 0; slot < 8; ++slot)
        if (slot != 3) CHECK(after.nodes[slot] == before.nodes[slot]);
}

TEST_CASE("each lost node gets a neighbour where there is one", "[topo]") {
    const auto f = groups_of({4, 4, 4}, 2);
    placement before;
    before.nodes = {0, 1, 4, 5};
    before.spares = {};
    before.buddies = {2, 3, 0, 1};
    const std::vector<std::uint32_t> lost{1, 4}, replacements{8, 6, 2};
    const auto after = swap(f, before, lost, replacements).value();
    CHECK(after.nodes == std::vector<std::uint32_t>{0, 2, 6, 5});
    // Host 8 is under other spines: it is the last choice.
    const std::vector<std::uint32_t> far{8, 3};
    CHECK(swap(f, before, std::vector<std::uint32_t>{4}, far)->nodes[2] == 3);
}

TEST_CASE("no replacement comes from where nothing joins it", "[topo]") {
    auto f = groups_of({4, 4}, 1);
    f.leaf_groups[1].island = 1;
    f.leaf_groups[1].spine_group = 1;
    placement before;
    before.nodes = {0, 1};
    before.buddies = {1, 0};
    const std::vector<std::uint32_t> lost{1}, other{4};
    CHECK(swap(f, before, lost, other).error().code == errc::exhausted);
    f.wan.push_back({0, 1, 100});
    CHECK(swap(f, before, lost, other).value().nodes == std::vector<std::uint32_t>{0, 4});
}

TEST_CASE("too few replacements are an error, and nothing is lost", "[topo]") {
    const auto f = groups_of({8});
    const auto before = place(f, all_hosts(f), make("dp=4", 4)).value();
    CHECK(swap(f, before, before.nodes, std::vector<std::uint32_t>{7}).error().code == errc::exhausted);
}

TEST_CASE("a lost node that is not on the fabric any more", "[topo]") {
    const auto f = groups_of({4});
    placement before;
    before.nodes = {0, none};
    before.buddies = {1, 0};
    const auto after =
        swap(f, before, std::vector<std::uint32_t>{none}, std::vector<std::uint32_t>{2}).value();
    CHECK(after.nodes == std::vector<std::uint32_t>{0, 2});
}

TEST_CASE("a placement moves onto the nodes that are there", "[topo]") {
    const auto f = groups_of({4, 4, 4}, 2);
    placement before;
    before.nodes = {0, 1, 4, 5};
    before.spares = {2, 11};
    before.buddies = {2, 3, 0, 1};
    // Hosts 1 and 4 are lost, 2, 6 and 8 run nothing yet.
    const auto after = swap_onto(f, before, std::vector<std::uint32_t>{0, 2, 5, 6, 8}).value();
    CHECK(after.nodes == std::vector<std::uint32_t>{0, 2, 6, 5});
    CHECK(after.spares == std::vector<std::uint32_t>{11});
    CHECK(after.buddies == before.buddies);
    CHECK(swap_onto(f, before, before.nodes)->nodes == before.nodes);
    CHECK(swap_onto(f, before, std::vector<std::uint32_t>{0, 1, 4}).error().code == errc::exhausted);
}

TEST_CASE("without a fabric replacements come in their order", "[topo]") {
    placement before;
    before.nodes = {3, 0, 1, 2};
    const auto after = swap_onto({}, before, std::vector<std::uint32_t>{9, 2, 7, 3}).value();
    CHECK(after.nodes == std::vector<std::uint32_t>{3, 9, 7, 2});
}

}  // namespace test_swap
