// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/traffic.hpp>

#include "topo/placement/communication.hpp"
#include "topo/placement/job_slots.hpp"
#include "topo/placement/locations.hpp"

namespace banyan::topo {
namespace {

/// Where each slot is, so that the loops over ranks need not look at the fabric.
struct positions {
    job_slots job;
    std::vector<std::uint32_t> slot_of_rank;
    std::vector<std::uint32_t> local_of_rank;  ///< position in the slot: which GPU, and so which rail
    slot_locations at;

    positions(const fabric& f, const request& r, const placement& p)
        : job(r), slot_of_rank(r.dims.ranks()), local_of_rank(r.dims.ranks()), at(f, p.nodes) {
        const auto ranks = job.ranks_by_slot();
        for (std::uint32_t i = 0; i < ranks.size(); ++i) {
            slot_of_rank[ranks[i]] = i / r.ranks_per_node;
            local_of_rank[ranks[i]] = i % r.ranks_per_node;
        }
    }
};

/// Uplinks of each leaf.
std::vector<std::uint32_t> count_uplinks(const fabric& f) {
    std::vector<std::uint32_t> out(f.switches.size());
    for (const auto& l : f.links) {
        if (l.a.kind != node_kind::switch_node || l.b.kind != node_kind::switch_node) continue;
        const auto &a = f.switches[l.a.index], &b = f.switches[l.b.index];
        if (a.level == 0 && b.level == 1) ++out[a.box];
        if (b.level == 0 && a.level == 1) ++out[b.box];
    }
    return out;
}

/// What leaves each rail of each leaf group upwards.
class uplink_load {
  public:
    uplink_load(const fabric& f, const positions& s) : f_(f), where_(s), by_group_(f.leaf_groups.size()) {
        for (std::size_t g = 0; g < by_group_.size(); ++g)
            by_group_[g].resize(f.leaf_groups[g].leaves.size());
    }
    void add(std::uint32_t rank, double bytes) {
        const auto g = where_.at[where_.slot_of_rank[rank]].leaf_group;
        if (g == none || by_group_[g].empty()) return;
        by_group_[g][where_.local_of_rank[rank] % by_group_[g].size()] += bytes;
    }
    double busiest() const {
        const auto uplinks = count_uplinks(f_);
        double most = 0;
        for (std::size_t g = 0; g < by_group_.size(); ++g)
            for (std::size_t rail = 0; rail < by_group_[g].size(); ++rail)
                if (const auto n = uplinks[f_.leaf_groups[g].leaves[rail]]; n > 0)
                    most = std::max(most, by_group_[g][rail] / n);
        return most;
    }

  private:
    const fabric& f_;
    const positions& where_;
    std::vector<std::vector<double>> by_group_;
};

/// Calls `visit(first rank, distance of the members)` for every process group along `d`.
template <class Visit>
void each_group(const shape& dims, dimension d, Visit visit) {
    const auto stride = stride_of(dims, d), size = dims.size(d);
    for (std::uint32_t rank = 0; rank < dims.ranks(); ++rank)
        if (rank / stride % size == 0) visit(rank, stride);
}

class counter {
  public:
    counter(const request& r, const positions& s, uplink_load& load)
        : r_(r),
          where_(s),
          load_(load),
          per_edge_(traffic_of(r.dims, r.model.value_or(model_size{}))),
          together_(s.at) {}

    dimension_cost count(dimension d) {
        dimension_cost out;
        out.dim = d;
        const auto size = r_.dims.size(d);
        const bool to_all = pattern_of(r_, d) == pattern::all_to_all;
        std::vector<std::uint32_t> groups, spines;
        each_group(r_.dims, d, [&](std::uint32_t first, std::uint32_t stride) {
            ++out.groups;
            groups.clear();
            spines.clear();
            for (std::uint32_t i = 0; i < size; ++i) {
                const auto slot = where_.slot_of_rank[first + i * stride];
                const auto& at = where_.at[slot];
                if (groups.empty() || groups.back() != at.leaf_group) groups.push_back(at.leaf_group);
                if (spines.empty() || spines.back() != at.spine_group) spines.push_back(at.spine_group);
            }
            const auto spread = distinct(groups);
            out.largest_spread = std::max(out.largest_spread, spread);
            out.over_leaf_groups += spread > 1;
            out.over_spine_groups += distinct(spines) > 1;
            if (to_all) send_to_all(out, first, stride, size);
        });
        if (to_all) return out;
        each_send(r_, d, [&](std::uint32_t from, std::uint32_t to) { send(out, from, to); });
        return out;
    }

  private:
    static std::uint32_t distinct(std::vector<std::uint32_t>& v) {
        std::sort(v.begin(), v.end());
        return static_cast<std::uint32_t>(std::unique(v.begin(), v.end()) - v.begin());
    }
    void send(dimension_cost& out, std::uint32_t from, std::uint32_t to) {
        const auto t = where_.at.between(where_.slot_of_rank[from], where_.slot_of_rank[to]);
        const auto bytes = per_edge_[out.dim];
        ++out.edges[t];
        out.bytes[t] += bytes;
        if (t >= tier::spine) load_.add(from, bytes);
    }
    /// Everybody in the group to everybody else, by how many are where: the pairs would be as the square.
    void send_to_all(dimension_cost& out, std::uint32_t first, std::uint32_t stride, std::uint32_t size) {
        for (std::uint32_t i = 0; i < size; ++i) together_.add(where_.slot_of_rank[first + i * stride], 1);
        const auto bytes = per_edge_[out.dim];
        const auto pairs = together_.pairs();
        for (const auto t : all_tiers) {
            out.edges[t] += pairs[t];
            out.bytes[t] += static_cast<double>(pairs[t]) * bytes;
        }
        for (std::uint32_t i = 0; i < size; ++i) {
            const auto rank = first + i * stride;
            load_.add(rank, static_cast<double>(together_.above_leaf(where_.slot_of_rank[rank])) * bytes);
        }
        together_.clear();
    }

    const request& r_;
    const positions& where_;
    uplink_load& load_;
    traffic per_edge_;
    pair_histogram together_;
};

}  // namespace

placement_cost cost_of(const fabric& f, const request& r, const placement& p) {
    placement_cost out;
    const positions where(f, r, p);
    uplink_load load(f, where);
    counter count(r, where, load);
    for (const auto d : all_dimensions)
        if (r.dims.size(d) > 1) out.dimensions.push_back(count.count(d));
    const auto weights = weights_of(r);
    for (const auto& d : out.dimensions)
        for (const auto t : all_tiers) {
            out.bytes[t] += d.bytes[t];
            out.weighted += static_cast<double>(d.edges[t]) * weights[d.dim] * f.tier_cost[t];
        }
    out.busiest_uplink = load.busiest();
    return out;
}

}  // namespace banyan::topo
