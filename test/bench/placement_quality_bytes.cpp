// SPDX-License-Identifier: BSD-3-Clause
#include "test/bench/placement_quality_bytes.hpp"

#include <algorithm>
#include <numeric>

namespace banyan::topo::quality {
namespace {

/// Of one send along each dimension, in bytes; bf16, sequence parallel, distributed optimizer.
by_dimension<double> bytes_of(const shape& s, const known_model& m) {
    const double tp = s.size(dimension::tp), cp = s.size(dimension::cp), ep = s.size(dimension::ep),
                 pp = s.size(dimension::pp), dp = s.size(dimension::dp);
    const double layers_here = m.layers / pp;
    const double tokens_here = m.sequences * m.sequence / cp;  // that a tensor group sees in a step
    const double all_activations = 2 * tokens_here * m.hidden;
    const double own_activations = all_activations / tp;
    const double own_parameters = 12 * m.hidden * m.hidden * layers_here / tp;
    by_dimension<double> out{};
    // Four gathers or scatters in a layer forward, four backward; a ring sends all but its own share.
    out[dimension::tp] = layers_here * 8 * (all_activations - own_activations);
    // Keys and values go round once forward, twice backward.
    out[dimension::cp] = layers_here * 3 * (cp - 1) * 2 * own_activations;
    // To each of the others its share, and back, and both again for the gradients.
    out[dimension::ep] = ep > 1 ? layers_here * 4 * own_activations / ep : 0;
    out[dimension::pp] = own_activations;
    // Gradients scattered and parameters gathered.
    out[dimension::dp] = 2 * (2 * own_parameters) * (dp - 1) / dp;
    return out;
}

/// What the tier costs where two hosts meet.
double cost_between(const fabric& f, std::uint32_t a, std::uint32_t b) {
    const auto x = f.hosts[a].leaf_group, y = f.hosts[b].leaf_group;
    if (x == y) return 0;
    const auto &g = f.leaf_groups[x], &h = f.leaf_groups[y];
    if (g.island != h.island) return f.tier_cost[tier::wan];
    return f.tier_cost[g.spine_group == h.spine_group ? tier::spine : tier::core];
}

/// The members that one of `size` sends to.
std::vector<std::uint32_t> receivers(dimension d, std::uint32_t me, std::uint32_t size) {
    std::vector<std::uint32_t> out;
    if (d == dimension::ep) {
        for (std::uint32_t other = 0; other < size; ++other)
            if (other != me) out.push_back(other);
    } else if (d == dimension::pp) {
        if (me > 0) out.push_back(me - 1);
        if (me + 1 < size) out.push_back(me + 1);
    } else {
        out.push_back((me + 1) % size);
    }
    return out;
}

}  // namespace

double sum(const by_model& all) { return std::accumulate(all.begin(), all.end(), 0.0); }

counted_job::counted_job(const shape& dims, const std::vector<std::uint32_t>& node_of_rank)
    : nodes_(1 + *std::max_element(node_of_rank.begin(), node_of_rank.end())) {
    for (std::size_t m = 0; m < models.size(); ++m) bytes_[m] = bytes_of(dims, models[m]);
    std::map<std::tuple<std::uint32_t, std::uint32_t, dimension>, double> sends;
    std::uint32_t stride = 1;
    for (const auto& [d, size] : dims.order) {
        for (std::uint32_t rank = 0; rank < node_of_rank.size() && size > 1; ++rank) {
            const auto me = rank / stride % size;
            for (const auto other : receivers(d, me, size)) {
                const auto from = node_of_rank[rank], to = node_of_rank[rank - me * stride + other * stride];
                if (from != to) ++sends[{from, to, d}];
            }
        }
        stride *= size;
    }
    for (const auto& [ends, count] : sends)
        flows_.push_back({std::get<0>(ends), std::get<1>(ends), std::get<2>(ends), count});
}

by_model counted_job::weighted(const fabric& f, const std::vector<std::uint32_t>& hosts) const {
    by_model out{};
    for (const auto& flow : flows_) {
        const auto cost = flow.sends * cost_between(f, hosts[flow.from], hosts[flow.to]);
        for (std::size_t m = 0; m < models.size(); ++m) out[m] += cost * bytes_[m][flow.along];
    }
    return out;
}

by_model counted_job::leaving(dimension d) const {
    by_model out{};
    for (const auto& flow : flows_)
        if (flow.along == d)
            for (std::size_t m = 0; m < models.size(); ++m) out[m] += flow.sends * bytes_[m][d] / nodes_;
    return out;
}

}  // namespace banyan::topo::quality
