// SPDX-License-Identifier: BSD-3-Clause
//
// The committed cases.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "common/file.hpp"
#include "common/text.hpp"
#include "test/bench/placement_quality.hpp"

namespace banyan::topo::quality {
namespace {

test_case read_case(const std::vector<site>& sites, std::string_view line) {
    const auto wrong = [&](std::string_view why) {
        fmt::print(stderr, "quality_bench: {}: {}\n", why, line);
        std::exit(2);
    };
    const auto fields = split(line, '\t');
    if (fields.size() != 5) wrong("not five fields");
    const auto number = [&](std::size_t i) { return parse_number(fields[i], 1'000'000).value(); };
    const auto at =
        std::find_if(sites.begin(), sites.end(), [&](const site& s) { return s.name == fields[0]; });
    if (at == sites.end()) wrong("no such fabric");
    test_case c;
    c.site = static_cast<std::size_t>(at - sites.begin());
    c.occupied = static_cast<double>(number(3)) / 100;
    c.seed = number(4);
    c.job = make_request(parse_shape(fields[1]).value(), static_cast<std::uint32_t>(number(2)),
                         at->ranks_per_node, 0)
                .value();
    c.free = free_after_a_day(*at, c.occupied, c.seed);
    if (c.free.size() < c.job.nodes) wrong("too few nodes are free");
    return c;
}

}  // namespace

std::vector<test_case> read_cases(const std::vector<site>& sites, const std::string& file) {
    const auto text = read_file(file, 1 << 20);
    if (!text) {
        fmt::print(stderr, "quality_bench: {}\n", text.error().text());
        std::exit(2);
    }
    std::vector<test_case> out;
    for (const auto line : split(*text, '\n'))
        if (!line.empty() && line[0] != '#' && !line.starts_with("fabric\t"))
            out.push_back(read_case(sites, line));
    return out;
}

}  // namespace banyan::topo::quality
