// SPDX-License-Identifier: BSD-3-Clause
//
// The cases, and what one placement costs: every rank's bytes, by test/every_rank.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "test/bench/placement_quality.hpp"

namespace banyan::topo::quality {
namespace {

/// The same nodes for pipelines and rings, with `a_node` stages of a pipeline on each of them, or as many
/// data parallel peers of one stage.
test_case variant_of(const site& s, const test_case& c, std::uint32_t a_node, bool stages, bool model) {
    const auto tp = s.ranks_per_node / a_node, rings = c.job.nodes / c.unit;
    const auto text = stages ? fmt::format("tp={},pp={},dp={}", tp, c.unit * a_node, rings)
                             : fmt::format("tp={},dp={},pp={}", tp, rings * a_node, c.unit);
    auto out = c;
    out.a_node = a_node;
    out.job = make_request(parse_shape(text).value(), c.job.nodes, s.ranks_per_node, 0).value();
    if (model) out.job.model = model_size{};
    return out;
}

}  // namespace

std::vector<test_case> all_cases(const std::vector<site>& sites, std::uint64_t seeds) {
    std::vector<test_case> out;
    for (std::size_t s = 0; s < sites.size(); ++s)
        for (const double occupied : {0.0, 0.3, 0.5, 0.7, 0.9})
            for (std::uint64_t seed = 1; seed <= (occupied > 0 ? seeds : 1); ++seed) {
                const auto free = free_after_a_day(sites[s], occupied, seed);
                for (const std::uint32_t unit : {4u, 8u}) {
                    std::uint32_t last = 0;
                    for (const double share : {0.0, 0.1, 0.3, 0.6, 0.9}) {
                        const auto most = share * static_cast<double>(free.size()) / unit;
                        const auto rings = std::max(2u, static_cast<std::uint32_t>(most));
                        if (rings == last || rings * unit > free.size()) continue;
                        last = rings;
                        auto& c = out.emplace_back(test_case{s, occupied, seed, {}, free, unit});
                        c.job.nodes = rings * unit;
                        c = variant_of(sites[s], c, 1, true, false);
                    }
                }
            }
    return out;
}

std::vector<test_case> held_out_cases(const std::vector<site>& sites, std::uint64_t count) {
    std::vector<test_case> out;
    constexpr std::uint64_t first_seed = 1'000'000;
    for (auto seed = first_seed; out.size() < count; ++seed) {
        std::mt19937 random(static_cast<std::uint32_t>(seed));
        const auto s = draw(random, static_cast<std::uint32_t>(sites.size()));
        const auto occupied = 0.95 * draw_unit(random);
        const auto unit = 1 + draw(random, 12);
        test_case c{s, occupied, seed, {}, free_after_a_day(sites[s], occupied, seed), unit};
        if (c.free.size() < 2 * unit) continue;
        const auto most = static_cast<std::uint32_t>(c.free.size()) / unit;
        // As many small jobs as large ones.
        const auto rings = std::exp(std::log(2.0) + draw_unit(random) * std::log(most / 2.0));
        c.job.nodes = unit * std::min(most, static_cast<std::uint32_t>(rings));
        const auto all = variants_of(sites[s], c);
        out.push_back(all[draw(random, static_cast<std::uint32_t>(all.size()))]);
    }
    return out;
}

std::vector<test_case> variants_of(const site& s, const test_case& c) {
    std::vector<test_case> out;
    for (const bool model : {false, true})
        for (std::uint32_t a_node = 1; a_node <= s.ranks_per_node; a_node *= 2)
            for (const bool stages : {true, false}) out.push_back(variant_of(s, c, a_node, stages, model));
    return out;
}

verdict judge(const site& s, const test_case& c, const test::every_rank& job, const placement& p) {
    verdict v;
    v.sent = job.on(s.net, p);
    v.busiest_uplink = v.sent.busiest_rail / uplinks_of_leaf;
    std::vector<std::uint32_t> left(s.net.leaf_groups.size());
    for (const auto h : c.free) ++left[s.net.hosts[h].leaf_group];
    std::set<std::uint32_t> touched;
    for (const auto h : p.nodes) {
        --left[s.net.hosts[h].leaf_group];
        touched.insert(s.net.hosts[h].leaf_group);
    }
    for (const auto g : touched) v.wasted += left[g] % c.unit;
    return v;
}

}  // namespace banyan::topo::quality
