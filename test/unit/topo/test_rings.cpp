// SPDX-License-Identifier: BSD-3-Clause
//
// Switches with hosts that are joined in a ring, and what only looks like one.
#include <numeric>

#include <banyan/topo/capacity.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "dump_writer.hpp"

namespace test_rings {

using namespace banyan::topo;
using namespace banyan::topo::test;

TEST_CASE("a ring of switches has no spine, however uneven its hosts", "[topo]") {
    dump_writer d;
    using counts = std::vector<unsigned>;
    const auto hosts =
        GENERATE(counts{1, 4, 4, 1}, counts{7, 6, 3}, counts{7, 6, 6, 2}, counts{9, 8, 8, 8, 2});
    const auto size = static_cast<unsigned>(hosts.size());
    std::vector<guid> ring;
    for (unsigned i = 0; i < size; ++i) ring.push_back(d.add_switch(fmt::format("r{}", i)));
    for (unsigned i = 0; i < size; ++i) {
        d.link(ring[i], 35, ring[(i + 1) % size], 36);
        for (unsigned h = 0; h < hosts[i]; ++h)
            d.link(d.add_hca(fmt::format("{}-{}-{} mlx5_0", hosts[i] == 1 ? "lab" : "n", i, h)), 1, ring[i],
                   1 + h);
    }
    const auto f = d.model();
    CHECK(levels(f) == 1);
    CHECK(f.hosts.size() == std::accumulate(hosts.begin(), hosts.end(), 0u));
    CHECK(f.excluded.empty());
    REQUIRE(f.defects.size() == 1);
    CHECK(f.defects[0].kind == "unknown-shape");
}

TEST_CASE("two switches with few hosts between two with many are spines", "[topo]") {
    dump_writer d;
    const unsigned hosts[] = {8, 2, 8, 2};
    std::vector<guid> all;
    for (unsigned i = 0; i < 4; ++i) all.push_back(d.add_switch(fmt::format("r{}", i)));
    for (unsigned i = 0; i < 4; ++i) {
        d.link(all[i], 35, all[(i + 1) % 4], 36);
        for (unsigned h = 0; h < hosts[i]; ++h)
            d.link(d.add_hca(fmt::format("n-{}-{} mlx5_0", i, h)), 1, all[i], 1 + h);
    }
    CHECK(levels(d.model()) == 2);
}

}  // namespace test_rings
