// SPDX-License-Identifier: BSD-3-Clause
//
// What a well-built fabric would not have. Each defect carries its evidence; nothing is repaired silently.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "topo/model/build.hpp"

namespace banyan::topo::build {
namespace {

/// The value that most have; ties go to the larger.
template <class Value>
Value usual(const std::vector<Value>& values) {
    std::map<Value, std::size_t> count;
    for (const auto& v : values) ++count[v];
    Value best{};
    std::size_t most = 0;
    for (const auto& [v, n] : count)
        if (n >= most) {
            best = v;
            most = n;
        }
    return best;
}

void missing_rails(fabric& f) {
    std::vector<std::size_t> counts;
    for (const auto& h : f.hosts) counts.push_back(h.hcas.size());
    const auto expected = usual(counts);
    for (const auto& h : f.hosts)
        if (h.hcas.size() < expected)
            f.defects.push_back(
                {"missing-rail",
                 {h.name},
                 fmt::format("{} HCAs on the fabric, most hosts have {}", h.hcas.size(), expected),
                 0.95});
    for (const auto& h : f.hosts)
        for (const auto i : h.hcas) {
            const auto leaf = f.hcas[i].leaf;
            if (h.leaf_group == none || leaf == none) continue;
            const auto& leaves = f.leaf_groups[h.leaf_group].leaves;
            if (std::find(leaves.begin(), leaves.end(), leaf) == leaves.end())
                f.defects.push_back({"foreign-leaf",
                                     {f.hcas[i].name},
                                     fmt::format("on {}, which serves another leaf group than {}",
                                                 f.switches[leaf].name, f.leaf_groups[h.leaf_group].id),
                                     h.confidence});
        }
}

void missing_uplinks(fabric& f) {
    std::vector<std::size_t> uplinks(f.switches.size());
    for (const auto& l : f.links)
        if (l.a.kind == node_kind::switch_node && l.b.kind == node_kind::switch_node) {
            ++uplinks[l.a.index];
            ++uplinks[l.b.index];
        }
    std::vector<std::size_t> of_leaves;
    for (std::size_t i = 0; i < f.switches.size(); ++i)
        if (f.switches[i].level == 0) of_leaves.push_back(uplinks[i]);
    const auto expected = usual(of_leaves);
    for (std::size_t i = 0; i < f.switches.size(); ++i)
        if (f.switches[i].level == 0 && uplinks[i] < expected)
            f.defects.push_back({"missing-uplink",
                                 {f.switches[i].name},
                                 fmt::format("{} uplinks, most leaves have {}", uplinks[i], expected),
                                 0.95});
}

void slow_links(fabric& f) {
    std::vector<std::uint32_t> rates;
    const auto rate = [](const link& l) { return std::uint32_t{l.rate.width} * l.rate.lane_gbps10; };
    for (const auto& l : f.links) rates.push_back(rate(l));
    const auto expected = usual(rates);
    const auto name = [&](const port_ref& p) {
        return fmt::format(
            "{} port {}", p.kind == node_kind::hca ? f.hcas[p.index].name : f.switches[p.index].name, p.port);
    };
    for (const auto& l : f.links)
        if (rate(l) != 0 && rate(l) < expected)
            f.defects.push_back({"slow-link",
                                 {name(l.a), name(l.b)},
                                 fmt::format("{} Gbit/s, most links have {}", rate(l) / 10, expected / 10),
                                 0.9});
}

}  // namespace

void find_defects(state& s) {
    missing_rails(s.out);
    missing_uplinks(s.out);
    slow_links(s.out);
}

}  // namespace banyan::topo::build
