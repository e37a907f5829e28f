// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement/search_orders.hpp"

#include <algorithm>

namespace banyan::topo {
namespace {

class order_search {
  public:
    order_search(const bin_distances& distance, const communication_graph& graph,
                 std::span<const std::uint32_t> items, bin_order& o, std::int64_t& budget, work& limit)
        : distance_(distance),
          graph_(graph),
          nodes_(o.sequence->size()),
          items_(items),
          order_(o),
          budget_(budget),
          limit_(limit),
          kept_(nodes_) {
        for (const auto& p : o.parts) reach_ += p.quota;
        o.each([&](std::uint32_t slot, std::uint32_t bin) { kept_[slot] = bin; });
        trial_ = kept_;
    }

    void run() {
        for (bool again = true; again && more();) {
            again = false;
            // The last parts move the fewest slots, so they are soonest weighed.
            for (auto i = used(); i-- > 0 && more();) again |= improve(i);
        }
    }

  private:
    /// Parts that an order does not use at first, and that may come in.
    static constexpr std::size_t others = 8;

    bool more() const { return budget_ > 0 && limit_.any(); }

    bool improve(std::size_t i) {
        bool better = false;
        auto& parts = order_.parts;
        const auto end = std::min(parts.size(), used() + others);
        for (auto j = i + 1; j < end && more(); ++j) {
            const auto swap = [&] { std::swap(parts[i], parts[j]); };
            better |= try_to(i, j, swap, swap);
        }
        for (std::size_t j = 0; j < end && more(); ++j)
            if (j != i && j != i + 1)
                better |= try_to(
                    std::min(i, j), std::max(i, j), [&] { shift(i, j); }, [&] { shift(j, i); });
        better |= improve_quota(i, parts[i].size);
        for (const auto item : items_) better |= improve_quota(i, parts[i].size - parts[i].size % item);
        return better || end_items(i);
    }

    /// As much as ends an item that began in another part.
    bool end_items(std::size_t i) {
        std::uint32_t reach = order_.parts[i].size;
        for (std::size_t p = 0; p < i; ++p) reach += order_.parts[p].quota;
        bool better = false;
        for (const auto item : items_)
            if (const auto rest = reach % item; rest < order_.parts[i].size)
                better |= improve_quota(i, order_.parts[i].size - rest);
        return better;
    }

    bool improve_quota(std::size_t i, std::uint32_t quota) {
        auto& part = order_.parts[i];
        const auto before = part.quota;
        const auto set = [&](std::uint32_t to) {
            reach_ = reach_ - part.quota + to;
            part.quota = to;
        };
        if (quota == before || !more()) return false;
        return try_to(
            i, order_.parts.size() - 1, [&] { set(quota); }, [&] { set(before); });
    }

    /// How many parts it takes to reach the job's nodes.
    std::size_t used() const {
        std::size_t reach = 0, n = 0;
        while (n < order_.parts.size() && reach < nodes_) reach += order_.parts[n++].quota;
        return n;
    }

    /// Applies `change`, which moves no slot but those of the parts first to last, and `undo` where that
    /// lowers no cost.
    template <class Change, class Undo>
    bool try_to(std::size_t first, std::size_t last, Change change, Undo undo) {
        limit_.spend(order_.parts.size());  // that are gone through, and some of them moved
        const bool in_turn = reach_ >= nodes_;
        change();
        assign(first, last, in_turn && reach_ >= nodes_);
        const auto cost = weigh();
        const bool better = cost < order_.objective * (1 - 1e-9);  // less is rounding
        if (better) order_.objective = cost;
        auto &from = better ? trial_ : kept_, &to = better ? kept_ : trial_;
        for (const auto slot : moved_) to[slot] = from[slot];
        if (!better) undo();
        return better;
    }

    /// Brings trial_ up to order_; `in_turn`: the parts first to last get what they got before.
    void assign(std::size_t first, std::size_t last, bool in_turn) {
        moved_.clear();
        const auto put = [&](std::uint32_t slot, std::uint32_t bin) {
            --budget_;
            if (trial_[slot] == bin) return;
            trial_[slot] = bin;
            moved_.push_back(slot);
        };
        if (!in_turn) return order_.each(put);
        std::size_t next = 0;
        for (std::size_t p = 0; p < first; ++p) next += order_.parts[p].quota;
        order_.each_in_turn(first, last + 1, next, put);
    }

    /// The cost of trial_, or any number that is no better than the order's.
    double weigh() {
        // A difference looks at edges from both ends, before and after.
        if (moved_.size() * 4 > nodes_) return graph_.objective(distance_, trial_, order_.objective, budget_);
        return order_.objective + graph_.difference(distance_, kept_, trial_, moved_, budget_);
    }

    void shift(std::size_t from, std::size_t to) {
        const auto p = order_.parts.begin();
        const auto f = static_cast<std::ptrdiff_t>(from), t = static_cast<std::ptrdiff_t>(to);
        if (from < to)
            std::rotate(p + f, p + f + 1, p + t + 1);
        else
            std::rotate(p + t, p + f, p + f + 1);
    }

    const bin_distances& distance_;
    const communication_graph& graph_;
    std::size_t nodes_;
    std::span<const std::uint32_t> items_;
    bin_order& order_;
    std::int64_t& budget_;
    work& limit_;
    std::size_t reach_ = 0;                    ///< slots that the parts take in their turn
    std::vector<std::uint32_t> kept_, trial_;  ///< the bin of each slot: as order_ was, and as it is tried
    std::vector<std::uint32_t> moved_;         ///< slots in which the two differ
};

}  // namespace

void search_orders(const bin_distances& distance, const communication_graph& graph,
                   std::span<const std::uint32_t> items, bin_order& o, std::int64_t& budget, work& limit) {
    order_search(distance, graph, items, o, budget, limit).run();
}

}  // namespace banyan::topo
