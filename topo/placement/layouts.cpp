// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/layouts.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "topo/placement/climb.hpp"
#include "topo/placement/tree_fit.hpp"

namespace banyan::topo {
namespace {

class search {
  public:
    search(const distances& far, const slot_graph& graph, const std::vector<pool>& pools, const request& r,
           const job_layout& layout, std::uint32_t island, std::int64_t budget, work& limit)
        : far_(far),
          graph_(graph),
          pools_(pools),
          request_(r),
          island_(island),
          budget_(budget),
          limit_(limit),
          by_pipeline_(layout.sequence_by(dimension::dp, dimension::pp)),
          by_stage_(layout.sequence_by(dimension::pp, dimension::dp)) {}

    std::optional<seating> run() {
        limit_.spend(pools_.size());
        std::size_t there = 0;
        for (const auto& p : pools_)
            if (usable(p)) there += p.size;
        if (there < request_.nodes) return std::nullopt;
        // The rings first: a job too large to look further loses least by that.
        const auto ring = request_.dims.size(dimension::dp), line = request_.dims.size(dimension::pp);
        std::vector<std::uint32_t> pieces{ring, 1, line};
        if (ring == 1) pieces = {1, line};
        for (const auto piece : pieces)
            if (request_.nodes % piece == 0 && (starts_.empty() || (budget_ > 0 && limit_.any())))
                start_with(piece);
        start_like_slurm();
        std::stable_sort(starts_.begin(), starts_.end(),
                         [](const order& a, const order& b) { return a.cost < b.cost; });
        const auto promising = std::min(climbs, starts_.size());
        for (std::size_t i = 0; i < promising; ++i) {
            auto share = budget_ / static_cast<std::int64_t>(promising - i);
            budget_ -= share;
            const auto given = share;
            climb(far_, graph_, request_.dims, starts_[i], share, limit_);
            limit_.spend(given - share);
            budget_ += share;
        }
        const auto& best = *std::min_element(starts_.begin(), starts_.end(),
                                             [](const order& a, const order& b) { return a.cost < b.cost; });
        return seating(far_, graph_, pools_, lay_out(best));
    }

  private:
    static constexpr std::size_t climbs = 3;

    bool usable(const pool& p) const { return island_ == none || p.at.island == island_; }

    const std::vector<std::uint32_t>& lay_out(const order& o) {
        pool_of_slot_.resize(request_.nodes);
        budget_ -= request_.nodes;
        o.hand_out_all([&](std::uint32_t slot, std::uint32_t pool) { pool_of_slot_[slot] = pool; });
        return pool_of_slot_;
    }

    void start_with(std::uint32_t piece) {
        const auto from_pools = shares_of_pools(piece);
        auto to_the_last_host = from_pools;
        for (auto& p : to_the_last_host.parts) p.most = p.all;
        start_as(from_pools);
        start_as(to_the_last_host);
        for (const auto group_of : {&location::spine_group, &location::island})
            if (const auto from_groups = shares_of(group_of, piece)) start_as(*from_groups);
    }

    /// What Slurm itself would take, so that no job is worse off with banyan than without.
    void start_like_slurm() {
        order by_name;  // leaf groups are numbered by the names of their hosts
        for (std::uint32_t i = 0; i < pools_.size(); ++i)
            if (usable(pools_[i])) by_name.parts.push_back({i, pools_[i].size, pools_[i].size});
        std::stable_sort(by_name.parts.begin(), by_name.parts.end(), [&](const auto& a, const auto& b) {
            return pools_[a.pool].at.leaf_group < pools_[b.pool].at.leaf_group;
        });
        start_as(by_name);
        auto by_tree = by_name;
        fit_like_tree(pools_, request_.nodes, by_tree, limit_);
        start_as(by_tree);
    }

    void start_as(const order& o) {
        for (const auto* sequence : {&by_pipeline_, &by_stage_}) {
            auto& start = starts_.emplace_back(o);
            start.sequence = sequence;
            // Where no budget is left to climb, only the best start counts.
            const auto limit = budget_ > 0 ? std::numeric_limits<double>::max() : best_start_;
            const auto before = budget_;
            start.cost = graph_.cost(far_, lay_out(start), limit, budget_);
            limit_.spend(before - budget_ + static_cast<std::int64_t>(pools_.size()));
            best_start_ = std::min(best_start_, start.cost);
        }
    }

    /// The pools that share_out takes for pieces of this size, those under one spine side by side; the others
    /// behind them.
    order shares_of_pools(std::uint32_t piece) const {
        std::vector<pool> own;
        for (std::uint32_t i = 0; i < pools_.size(); ++i)
            if (usable(pools_[i])) {
                own.push_back(pools_[i]);
                own.back().number = i;
            }
        share_out(own, request_.nodes / piece, piece, request_.spares);
        std::stable_sort(own.begin(), own.end(), [&](const pool& a, const pool& b) {
            const auto key = [](const pool& p) {
                return std::tuple(p.pieces == 0, p.at.island, p.at.spine_group,
                                  -static_cast<std::int64_t>(p.size));
            };
            return key(a) < key(b);
        });
        order o;
        for (const auto& p : own) {
            o.parts.push_back({p.number, p.pieces == 0 ? p.size : p.pieces * piece, p.size});
        }
        return o;
    }

    /// Whole pieces in each spine group or island (`group_of`), whose pools are filled to the last host, the
    /// largest first: where what joins those groups costs much more than what joins pools. None where there
    /// is one group.
    std::optional<order> shares_of(std::uint32_t location::*group_of, std::uint32_t piece) const {
        std::map<std::uint32_t, std::vector<std::uint32_t>> members;  // by group: its pools
        std::map<std::uint32_t, std::size_t> hosts_of_spine;
        for (std::uint32_t i = 0; i < pools_.size(); ++i)
            if (usable(pools_[i])) {
                members[pools_[i].at.*group_of].push_back(i);
                hosts_of_spine[pools_[i].at.spine_group] += pools_[i].size;
            }
        if (members.size() < 2) return std::nullopt;
        std::vector<pool> groups;
        for (auto& [number, own] : members) {
            std::stable_sort(own.begin(), own.end(), [&](auto a, auto b) {
                const auto key = [&](auto i) {
                    const auto& p = pools_[i];
                    return std::tuple(hosts_of_spine[p.at.spine_group], p.at.spine_group, p.size);
                };
                return key(a) > key(b);
            });
            auto& all = groups.emplace_back();
            all.number = number;
            all.at.spine_group = all.at.island = pools_[own.front()].at.island;  // what joins the groups
            for (const auto i : own) all.size += pools_[i].size;
        }
        share_out(groups, request_.nodes / piece, piece, request_.spares);
        std::stable_sort(groups.begin(), groups.end(), [](const pool& a, const pool& b) {
            return std::pair(a.pieces == 0, a.at.island) < std::pair(b.pieces == 0, b.at.island);
        });
        order o;
        for (const auto& g : groups) {
            auto left = g.pieces == 0 ? request_.nodes : g.pieces * piece;
            for (const auto i : members[g.number]) {
                o.parts.push_back({i, std::min(pools_[i].size, left), pools_[i].size});
                left -= o.parts.back().most;
            }
        }
        return o;
    }

    const distances& far_;
    const slot_graph& graph_;
    const std::vector<pool>& pools_;
    const request& request_;
    std::uint32_t island_;
    std::int64_t budget_;
    work& limit_;
    std::vector<std::uint32_t> by_pipeline_, by_stage_;
    std::vector<order> starts_;
    double best_start_ = std::numeric_limits<double>::max();
    std::vector<std::uint32_t> pool_of_slot_;  ///< of the last lay_out
};

}  // namespace

std::optional<seating> cheapest_layout(const distances& far, const slot_graph& graph,
                                       const std::vector<pool>& pools, const request& r,
                                       const job_layout& layout, std::uint32_t island, std::int64_t budget,
                                       work& limit) {
    return search(far, graph, pools, r, layout, island, budget, limit).run();
}

}  // namespace banyan::topo
