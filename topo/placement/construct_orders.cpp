// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/construct_orders.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <tuple>

#include "topo/placement/fit_tree.hpp"
#include "topo/placement/packing.hpp"
#include "topo/placement/search_orders.hpp"

namespace banyan::topo {
namespace {

class order_construction {
  public:
    order_construction(const bin_distances& distance, const communication_graph& graph,
                       const std::vector<bin>& bins, const order_problem& asked, std::uint32_t island,
                       std::int64_t budget, work& limit)
        : distance_(distance),
          graph_(graph),
          bins_(bins),
          asked_(asked),
          island_(island),
          budget_(budget),
          limit_(limit) {}

    std::optional<std::vector<std::uint32_t>> run() {
        limit_.spend(bins_.size());
        std::size_t there = 0;
        for (const auto& p : bins_)
            if (usable(p)) there += p.size;
        if (there < asked_.slots) return std::nullopt;
        for (const auto item : asked_.items)
            if (starts_.empty() || (budget_ > 0 && limit_.any())) start_with(item);
        start_like_slurm();
        start_with_tiles();
        std::stable_sort(starts_.begin(), starts_.end(),
                         [](const bin_order& a, const bin_order& b) { return a.objective < b.objective; });
        const auto promising = std::min(searched, starts_.size());
        for (std::size_t i = 0; i < promising; ++i) {
            auto share = budget_ / static_cast<std::int64_t>(promising - i);
            budget_ -= share;
            const auto given = share;
            search_orders(distance_, graph_, asked_.items, starts_[i], share, limit_);
            limit_.spend(given - share);
            budget_ += share;
        }
        const auto& best = *std::min_element(
            starts_.begin(), starts_.end(),
            [](const bin_order& a, const bin_order& b) { return a.objective < b.objective; });
        return assign(best);
    }

  private:
    static constexpr std::size_t searched = 3;  ///< of the starts, by search_orders

    bool usable(const bin& p) const { return island_ == none || p.at.island == island_; }

    const std::vector<std::uint32_t>& assign(const bin_order& o) {
        bin_of_slot_.resize(asked_.slots);
        budget_ -= asked_.slots;
        o.each([&](std::uint32_t slot, std::uint32_t bin) { bin_of_slot_[slot] = bin; });
        return bin_of_slot_;
    }

    void start_with(std::uint32_t item) {
        const auto from_bins = quotas_of_bins(item);
        auto to_the_last_host = from_bins;
        for (auto& p : to_the_last_host.parts) p.quota = p.size;
        start_as(from_bins);
        start_as(to_the_last_host);
        for (const auto group_of : {&location::spine_group, &location::island})
            if (const auto from_groups = quotas_of(group_of, item)) start_as(*from_groups);
    }

    /// In the rows of the bins that hold the most, of those that topology/tree takes, and of spine groups.
    void start_with_tiles() {
        if (asked_.tiles.empty() || budget_ <= 0 || !limit_.any()) return;
        auto whole = quotas_of_bins(1), last_host = whole;
        for (auto& p : last_host.parts) p.quota = p.size;
        const auto of_spines = quotas_of(&location::spine_group, 1);
        for (const auto stages : asked_.tiles) {
            if (budget_ <= 0 || !limit_.any()) return;
            auto sequence = asked_.job->sequence_in_tiles(stages);
            limit_.spend(std::int64_t{asked_.slots});
            if (sequence.empty()) return;
            tiled_.push_back(std::move(sequence));
            for (auto& p : whole.parts) p.quota = p.size - p.size % stages;
            for (const auto* o : {&whole, &last_host, &by_tree_}) start_in(*o, tiled_.back(), best_start_);
            if (of_spines) start_in(*of_spines, tiled_.back(), best_start_);
        }
    }

    /// What Slurm itself would take, so that no job is worse off with banyan than without.
    void start_like_slurm() {
        bin_order by_name;  // leaf groups are numbered by the names of their hosts
        for (std::uint32_t i = 0; i < bins_.size(); ++i)
            if (usable(bins_[i])) by_name.parts.push_back({i, bins_[i].size, bins_[i].size});
        std::stable_sort(by_name.parts.begin(), by_name.parts.end(), [&](const auto& a, const auto& b) {
            return bins_[a.bin].at.leaf_group < bins_[b.bin].at.leaf_group;
        });
        start_as(by_name);
        by_tree_ = by_name;
        fit_like_tree(bins_, asked_.slots, by_tree_, limit_);
        start_as(by_tree_);
    }

    void start_as(const bin_order& o) {
        // Where no budget is left for a search, only the best start counts.
        for (const auto& sequence : asked_.sequences)
            start_in(o, sequence, budget_ > 0 ? std::numeric_limits<double>::max() : best_start_);
    }
    /// Left out where it costs `limit` or more.
    void start_in(const bin_order& o, const std::vector<std::uint32_t>& sequence, double limit) {
        auto& start = starts_.emplace_back(o);
        start.sequence = &sequence;
        const auto before = budget_;
        start.objective = graph_.objective(distance_, assign(start), limit, budget_);
        limit_.spend(before - budget_ + static_cast<std::int64_t>(bins_.size()));
        best_start_ = std::min(best_start_, start.objective);
        // What was not weighed to the end has no cost to start a search from.
        if (start.objective >= limit) starts_.pop_back();
    }

    /// The bins that pack takes for items of this size, those under one spine side by side; the others
    /// behind them.
    bin_order quotas_of_bins(std::uint32_t item) const {
        std::vector<bin> own;
        for (std::uint32_t i = 0; i < bins_.size(); ++i)
            if (usable(bins_[i])) {
                own.push_back(bins_[i]);
                own.back().number = i;
            }
        pack(own, asked_.slots / item, item, asked_.spares);
        std::stable_sort(own.begin(), own.end(), [&](const bin& a, const bin& b) {
            const auto key = [](const bin& p) {
                return std::tuple(p.items == 0, p.at.island, p.at.spine_group,
                                  -static_cast<std::int64_t>(p.size));
            };
            return key(a) < key(b);
        });
        bin_order o;
        for (const auto& p : own) {
            o.parts.push_back({p.number, p.items == 0 ? p.size : p.items * item, p.size});
        }
        return o;
    }

    /// Whole items in each spine group or island (`group_of`), whose bins are filled to the last host, the
    /// largest first: where what joins those groups costs much more than what joins bins. None where there
    /// is one group.
    std::optional<bin_order> quotas_of(std::uint32_t location::*group_of, std::uint32_t item) const {
        std::map<std::uint32_t, std::vector<std::uint32_t>> members;  // by group: its bins
        std::map<std::uint32_t, std::size_t> hosts_of_spine;
        for (std::uint32_t i = 0; i < bins_.size(); ++i)
            if (usable(bins_[i])) {
                members[bins_[i].at.*group_of].push_back(i);
                hosts_of_spine[bins_[i].at.spine_group] += bins_[i].size;
            }
        if (members.size() < 2) return std::nullopt;
        std::vector<bin> groups;
        for (auto& [number, own] : members) {
            std::stable_sort(own.begin(), own.end(), [&](auto a, auto b) {
                const auto key = [&](auto i) {
                    const auto& p = bins_[i];
                    return std::tuple(hosts_of_spine[p.at.spine_group], p.at.spine_group, p.size);
                };
                return key(a) > key(b);
            });
            auto& all = groups.emplace_back();
            all.number = number;
            all.at.spine_group = all.at.island = bins_[own.front()].at.island;  // what joins the groups
            for (const auto i : own) all.size += bins_[i].size;
        }
        pack(groups, asked_.slots / item, item, asked_.spares);
        std::stable_sort(groups.begin(), groups.end(), [](const bin& a, const bin& b) {
            return std::pair(a.items == 0, a.at.island) < std::pair(b.items == 0, b.at.island);
        });
        bin_order o;
        for (const auto& g : groups) {
            auto left = g.items == 0 ? asked_.slots : g.items * item;
            for (const auto i : members[g.number]) {
                o.parts.push_back({i, std::min(bins_[i].size, left), bins_[i].size});
                left -= o.parts.back().quota;
            }
        }
        return o;
    }

    const bin_distances& distance_;
    const communication_graph& graph_;
    const std::vector<bin>& bins_;
    const order_problem& asked_;
    std::uint32_t island_;
    std::int64_t budget_;
    work& limit_;
    std::vector<bin_order> starts_;
    bin_order by_tree_;                             ///< the bins that topology/tree takes
    std::deque<std::vector<std::uint32_t>> tiled_;  ///< sequences, which starts point to
    double best_start_ = std::numeric_limits<double>::max();
    std::vector<std::uint32_t> bin_of_slot_;  ///< of the last that was assigned
};

}  // namespace

std::optional<std::vector<std::uint32_t>> construct_by_orders(
    const bin_distances& distance, const communication_graph& graph, const std::vector<bin>& bins,
    const order_problem& asked, std::uint32_t island, std::int64_t budget, work& limit) {
    return order_construction(distance, graph, bins, asked, island, budget, limit).run();
}

}  // namespace banyan::topo
