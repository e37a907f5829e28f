// SPDX-License-Identifier: BSD-3-Clause
#include "fixtures.hpp"

#include <numeric>

#include <banyan/topo/reader.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "common/file.hpp"
#include "test/built.hpp"

namespace banyan::topo::test {

std::string fixture(const std::string& name) {
    return read_file(banyan::testing::fixture("ib/") + name, 1 << 24).value();
}

fabric model_of(const std::string& name) { return build_fabric(read_ibnetdiscover(fixture(name)).value()); }

fabric groups_of(const std::vector<std::uint32_t>& sizes, std::uint32_t per_spine) {
    fabric f;
    for (std::uint32_t g = 0; g < sizes.size(); ++g) {
        leaf_group group;
        group.id = fmt::format("g{}", g + 1);
        group.spine_group = g / per_spine;
        for (std::uint32_t i = 0; i < sizes[g]; ++i) {
            group.hosts.push_back(static_cast<std::uint32_t>(f.hosts.size()));
            host h;
            h.name = fmt::format("n{:03}", f.hosts.size());
            h.leaf_group = g;
            f.hosts.push_back(std::move(h));
        }
        f.leaf_groups.push_back(std::move(group));
    }
    return f;
}

request make(const std::string& shape, std::uint32_t nodes, std::uint32_t spares) {
    auto r = make_request(parse_shape(shape).value(), nodes, 0, spares);
    INFO((r ? std::string() : r.error().text()));
    REQUIRE(r);
    return *r;
}

std::vector<std::uint32_t> all_hosts(const fabric& f) {
    std::vector<std::uint32_t> out(f.hosts.size());
    std::iota(out.begin(), out.end(), 0u);
    return out;
}

}  // namespace banyan::topo::test
