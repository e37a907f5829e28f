// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/layouts.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <tuple>

namespace banyan::topo {
namespace {

/// What one pool gives: `most` hosts in its turn, and all of them only when the others do not suffice.
struct part {
    std::uint32_t pool = 0;
    std::uint32_t most = 0, all = 0;
};

/// Pools in a row, and the slots that are handed out to them.
struct order {
    std::vector<part> parts;
    const std::vector<std::uint32_t>* sequence = nullptr;
    double cost = 0;
};

class search {
  public:
    search(const distances& far, const slot_graph& graph, const std::vector<pool>& pools, const request& r,
           const job_layout& layout, std::uint32_t island, std::int64_t budget)
        : far_(far),
          graph_(graph),
          pools_(pools),
          request_(r),
          island_(island),
          budget_(budget),
          by_pipeline_(layout.sequence_by(dimension::dp, dimension::pp)),
          by_stage_(layout.sequence_by(dimension::pp, dimension::dp)) {}

    std::optional<seating> run() {
        std::size_t there = 0;
        for (const auto& p : pools_)
            if (usable(p)) there += p.size;
        if (there < request_.nodes) return std::nullopt;
        // The rings first: a job too large to look further loses least by that.
        const auto ring = request_.dims.size(dimension::dp), line = request_.dims.size(dimension::pp);
        std::vector<std::uint32_t> pieces{ring, 1, line};
        if (ring == 1) pieces = {1, line};
        for (const auto piece : pieces)
            if (request_.nodes % piece == 0 && (starts_.empty() || budget_ > 0)) start_with(piece);
        std::stable_sort(starts_.begin(), starts_.end(),
                         [](const order& a, const order& b) { return a.cost < b.cost; });
        const auto promising = std::min(climbs, starts_.size());
        for (std::size_t i = 0; i < promising; ++i)
            climb(starts_[i], budget_ / static_cast<std::int64_t>(promising - i));
        const auto& best = *std::min_element(starts_.begin(), starts_.end(),
                                             [](const order& a, const order& b) { return a.cost < b.cost; });
        return seating(far_, graph_, pools_, lay_out(best));
    }

  private:
    static constexpr std::size_t climbs = 3;
    /// Pools that an order does not use at first, and that may come in.
    static constexpr std::size_t others = 8;

    bool usable(const pool& p) const { return island_ == none || p.island == island_; }

    /// The pool of each slot.
    const std::vector<std::uint32_t>& lay_out(const order& o) {
        pool_of_slot_.resize(request_.nodes);
        std::size_t next = 0;
        const auto hand_out = [&](const part& p, std::uint32_t count) {
            for (; count > 0 && next < request_.nodes; --count) pool_of_slot_[(*o.sequence)[next++]] = p.pool;
        };
        for (const auto& p : o.parts) {
            if (next == request_.nodes) break;
            hand_out(p, p.most);
        }
        for (const auto& p : o.parts) {
            if (next == request_.nodes) break;
            hand_out(p, p.all - p.most);
        }
        return pool_of_slot_;
    }

    /// The whole cost, or any number from `limit` on.
    double weigh(const order& o, double limit) {
        lay_out(o);
        budget_ -= request_.nodes;  // for laying them out
        return graph_.cost(far_, pool_of_slot_, limit, budget_);
    }

    /// The same for an order that was changed since `kept_`, which costs `limit`, was laid out.
    double weigh_changed(const order& o, double limit) {
        lay_out(o);
        moved_.clear();
        for (std::uint32_t slot = 0; slot < request_.nodes; ++slot)
            if (pool_of_slot_[slot] != kept_[slot]) moved_.push_back(slot);
        budget_ -= request_.nodes;
        // A difference looks at edges from both ends, before and after.
        if (moved_.size() * 4 > request_.nodes) return graph_.cost(far_, pool_of_slot_, limit, budget_);
        return limit + graph_.difference(far_, kept_, pool_of_slot_, moved_, budget_);
    }

    void start_with(std::uint32_t piece) {
        const auto from_pools = shares_of_pools(piece);
        auto to_the_last_host = from_pools;
        for (auto& p : to_the_last_host.parts) p.most = p.all;
        std::vector<order> orders{from_pools, std::move(to_the_last_host)};
        for (const auto group_of : {&pool::spine_group, &pool::island})
            if (auto from_groups = shares_of(group_of, piece)) orders.push_back(std::move(*from_groups));
        for (const auto* sequence : {&by_pipeline_, &by_stage_})
            for (const auto& o : orders) {
                auto& start = starts_.emplace_back(o);
                start.sequence = sequence;
                // Where no budget is left to climb, only the best start counts.
                start.cost = weigh(start, budget_ > 0 ? std::numeric_limits<double>::max() : best_start_);
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
                return std::tuple(p.pieces == 0, p.island, p.spine_group, -static_cast<std::int64_t>(p.size));
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
    std::optional<order> shares_of(std::uint32_t pool::*group_of, std::uint32_t piece) const {
        std::map<std::uint32_t, std::vector<std::uint32_t>> members;  // by group: its pools
        std::map<std::uint32_t, std::size_t> hosts_of_spine;
        for (std::uint32_t i = 0; i < pools_.size(); ++i)
            if (usable(pools_[i])) {
                members[pools_[i].*group_of].push_back(i);
                hosts_of_spine[pools_[i].spine_group] += pools_[i].size;
            }
        if (members.size() < 2) return std::nullopt;
        std::vector<pool> groups;
        for (auto& [number, own] : members) {
            std::stable_sort(own.begin(), own.end(), [&](auto a, auto b) {
                const auto key = [&](auto i) {
                    const auto& p = pools_[i];
                    return std::tuple(hosts_of_spine[p.spine_group], p.spine_group, p.size);
                };
                return key(a) > key(b);
            });
            auto& all = groups.emplace_back();
            all.number = number;
            all.spine_group = all.island = pools_[own.front()].island;  // what joins the groups
            for (const auto i : own) all.size += pools_[i].size;
        }
        share_out(groups, request_.nodes / piece, piece, request_.spares);
        std::stable_sort(groups.begin(), groups.end(), [](const pool& a, const pool& b) {
            return std::pair(a.pieces == 0, a.island) < std::pair(b.pieces == 0, b.island);
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

    /// How many parts it takes to reach the job's nodes.
    std::size_t used(const order& o) const {
        std::size_t reach = 0, n = 0;
        while (n < o.parts.size() && reach < request_.nodes) reach += o.parts[n++].most;
        return n;
    }

    /// Applies `change`, and `undo` where that lowers no cost.
    template <class Change, class Undo>
    bool try_to(order& o, Change change, Undo undo) {
        change();
        const auto cost = weigh_changed(o, o.cost);
        if (cost < o.cost * (1 - 1e-9)) {
            o.cost = cost;
            std::swap(kept_, pool_of_slot_);
            return true;
        }
        undo();
        return false;
    }

    void climb(order& o, std::int64_t share) {
        const auto until = budget_ - share;
        kept_ = lay_out(o);
        for (bool again = true; again && budget_ > until;) {
            again = false;
            for (std::size_t i = used(o); i-- > 0;) {  // the last changes least, so it is soonest weighed
                const auto end = std::min(o.parts.size(), used(o) + others);
                for (std::size_t j = i + 1; j < end && budget_ > until; ++j) {
                    const auto swap = [&] { std::swap(o.parts[i], o.parts[j]); };
                    again |= try_to(o, swap, swap);
                }
                for (std::size_t j = 0; j < end && budget_ > until; ++j)
                    if (j != i && j != i + 1)
                        again |= try_to(
                            o, [&] { shift(o, i, j); }, [&] { shift(o, j, i); });
                for (const auto most : caps(o.parts[i])) {
                    const auto before = o.parts[i].most;
                    if (most != before && budget_ > until)
                        again |= try_to(
                            o, [&] { o.parts[i].most = most; }, [&] { o.parts[i].most = before; });
                }
            }
        }
    }

    static void shift(order& o, std::size_t from, std::size_t to) {
        const auto p = o.parts.begin();
        const auto f = static_cast<std::ptrdiff_t>(from), t = static_cast<std::ptrdiff_t>(to);
        if (from < to)
            std::rotate(p + f, p + f + 1, p + t + 1);
        else
            std::rotate(p + t, p + f, p + f + 1);
    }

    /// All that a part has, whole rings of it, and whole pipelines.
    std::array<std::uint32_t, 3> caps(const part& p) const {
        const auto ring = request_.dims.size(dimension::dp), line = request_.dims.size(dimension::pp);
        return {p.all, p.all - p.all % ring, p.all - p.all % line};
    }

    const distances& far_;
    const slot_graph& graph_;
    const std::vector<pool>& pools_;
    const request& request_;
    std::uint32_t island_;
    std::int64_t budget_;
    std::vector<std::uint32_t> by_pipeline_, by_stage_;
    std::vector<order> starts_;
    double best_start_ = std::numeric_limits<double>::max();
    std::vector<std::uint32_t> pool_of_slot_;  ///< of the last lay_out
    std::vector<std::uint32_t> kept_;          ///< that of the order which is climbed
    std::vector<std::uint32_t> moved_;         ///< slots in which the two differ
};

}  // namespace

std::optional<seating> cheapest_layout(const distances& far, const slot_graph& graph,
                                       const std::vector<pool>& pools, const request& r,
                                       const job_layout& layout, std::uint32_t island, std::int64_t budget) {
    return search(far, graph, pools, r, layout, island, budget).run();
}

}  // namespace banyan::topo
