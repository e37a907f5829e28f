// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/construct_orders.hpp"

#include <algorithm>
#include <deque>
#include <limits>

#include "topo/placement/bin_rows.hpp"
#include "topo/placement/fit_tree.hpp"
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
          rows_(bins, asked, island),
          budget_(budget),
          limit_(limit) {}

    std::optional<std::vector<std::uint32_t>> run() {
        limit_.spend(bins_.size());
        if (rows_.hosts() < asked_.slots) return std::nullopt;
        start_like_slurm();
        for (const auto item : asked_.items)
            if (starts_.empty() || more()) start_with(item);
        start_with_tiles();
        std::stable_sort(starts_.begin(), starts_.end(),
                         [](const bin_order& a, const bin_order& b) { return a.objective < b.objective; });
        budget_ = std::min(budget_ + most_for_search, most_for_search);
        const auto promising = std::min(searched, starts_.size());
        for (std::size_t i = 0; i < promising; ++i) {
            auto share = budget_ / static_cast<std::int64_t>(promising - i);
            budget_ -= share;
            const auto given = share;
            search_orders(distance_, graph_, asked_.items, starts_[i], share, limit_);
            limit_.spend(given - share);
            budget_ += share;
        }
        const auto best = std::min_element(
            starts_.begin(), starts_.end(),
            [](const bin_order& a, const bin_order& b) { return a.objective < b.objective; });
        return best != starts_.end() && best->objective < least_of_slurm_ ? assign(*best) : of_slurm_;
    }

  private:
    static constexpr std::size_t searched = 3;  ///< of the starts, by search_orders
    static constexpr std::int64_t most_for_search = 30'000;

    bool more() const { return budget_ > 0 && limit_.any(); }

    const std::vector<std::uint32_t>& assign(const bin_order& o) {
        bin_of_slot_.resize(asked_.slots);
        budget_ -= asked_.slots;
        o.each([&](std::uint32_t slot, std::uint32_t bin) { bin_of_slot_[slot] = bin; });
        return bin_of_slot_;
    }

    void start_with(std::uint32_t item) {
        const auto from_bins = rows_.of_bins(item);
        auto to_the_last_host = from_bins;
        for (auto& p : to_the_last_host.parts) p.quota = p.size;
        start_as(from_bins);
        start_as(to_the_last_host);
        for (const auto group_of : {&location::spine_group, &location::island})
            if (const auto from_groups = rows_.of_groups(group_of, item)) start_as(*from_groups);
    }

    /// In the rows of the bins that hold the most, of those that topology/tree takes, and of spine groups.
    void start_with_tiles() {
        if (!more()) return;
        const auto stage = asked_.slots_of_stage;
        auto whole = rows_.of_bins(1), last_host = whole;
        for (auto& p : last_host.parts) p.quota = p.size;
        const auto of_spines = rows_.of_groups(&location::spine_group, 1);
        for (const auto stages : asked_.tiles) {
            if (!more()) return;
            auto sequence = asked_.job.sequence_in_tiles(stages);
            limit_.spend(std::int64_t{asked_.slots});
            if (sequence.empty()) return;
            tiled_.push_back(std::move(sequence));
            for (auto& p : whole.parts) p.quota = p.size - p.size % (stages * stage);
            for (const auto* o : {&whole, &last_host, &by_tree_}) start_in(*o, tiled_.back(), best_start_);
            if (of_spines) start_in(*of_spines, tiled_.back(), best_start_);
        }
    }

    /// What Slurm itself would take, so that no job is worse off with banyan than without.
    void start_like_slurm() {
        by_tree_ = by_name_ = rows_.by_name();
        fit_like_tree(bins_, asked_.slots, by_tree_, limit_);
        for (const auto* o : {&by_name_, &by_tree_}) start_by_name(*o);
        for (auto segment = asked_.slots / 2; segment > 1; --segment)
            if (asked_.slots % segment == 0) start_with_segments(segment);
        for (const auto* o : {&by_name_, &by_tree_}) start_as(*o);
    }

    /// topology/block with --segment: whole segments in each leaf group, from the first one on, or from the
    /// one that holds most.
    void start_with_segments(std::uint32_t size) {
        auto by_name = by_name_;
        std::size_t there = 0;
        for (auto& p : by_name.parts) there += p.quota -= p.quota % size;
        if (there < asked_.slots || !more()) return;
        start_by_name(by_name);
        std::stable_sort(by_name.parts.begin(), by_name.parts.end(),
                         [](const auto& a, const auto& b) { return a.quota > b.quota; });
        auto left = asked_.slots;
        for (auto& p : by_name.parts) left -= p.quota = std::min(p.quota, left);
        start_by_name(by_name);
    }

    /// The hosts that the row gives in their turn in the order of their names, and the slots in their own.
    void start_by_name(const bin_order& o) {
        std::vector<std::uint32_t> left(bins_.size());
        for (const auto& p : o.parts) left[p.bin] = p.quota;
        bin_of_slot_.clear();
        const auto before = budget_;
        budget_ -= asked_.slots;
        for (auto b = asked_.bin_by_name.begin(); bin_of_slot_.size() < asked_.slots; ++b) {
            if (left[*b] == 0) continue;
            --left[*b];
            bin_of_slot_.push_back(*b);
        }
        const auto least = std::min(best_start_, least_of_slurm_);
        const auto objective = graph_.objective(distance_, bin_of_slot_, least, budget_);
        limit_.spend(before - budget_ + static_cast<std::int64_t>(bins_.size() + asked_.bin_by_name.size()));
        if (objective >= least) return;
        least_of_slurm_ = objective;
        of_slurm_ = bin_of_slot_;
    }

    void start_as(const bin_order& o) {
        // Where no budget is left for a search, only the best start counts.
        constexpr double promising = 2;
        for (const auto& sequence : asked_.sequences)
            start_in(o, sequence, budget_ > 0 ? promising * best_start_ : best_start_);
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

    const bin_distances& distance_;
    const communication_graph& graph_;
    const std::vector<bin>& bins_;
    const order_problem& asked_;
    bin_rows rows_;
    std::int64_t budget_;
    work& limit_;
    std::vector<bin_order> starts_;
    bin_order by_name_, by_tree_;                   ///< all bins, and those that topology/tree takes
    std::deque<std::vector<std::uint32_t>> tiled_;  ///< sequences, which starts point to
    double best_start_ = std::numeric_limits<double>::max() / 4;
    std::vector<std::uint32_t> bin_of_slot_;  ///< of the last that was assigned
    std::vector<std::uint32_t> of_slurm_;     ///< the best of start_by_name that starts_ have none below
    double least_of_slurm_ = std::numeric_limits<double>::max();
};

}  // namespace

std::optional<std::vector<std::uint32_t>> construct_by_orders(
    const bin_distances& distance, const communication_graph& graph, const std::vector<bin>& bins,
    const order_problem& asked, std::uint32_t island, std::int64_t budget, work& limit) {
    return order_construction(distance, graph, bins, asked, island, budget, limit).run();
}

}  // namespace banyan::topo
