// SPDX-License-Identifier: BSD-3-Clause
//
// The simulated nodes: their memory, their daemons, and the network between them. Layers of one world: a
// schedule, the machines on it, the job on these (job.hpp), what befalls them (world.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ckptd/agreement/agreement.hpp"
#include "test/simulator/schedule.hpp"
#include "test/simulator/world.hpp"

namespace banyan::ckpt::simulator {

using agreement::shelf;

/// Ends a schedule: what must hold does not.
struct breach {
    std::string text;
};

/// What a shard holds: the state of its rank after a step. It is `common` to all ranks but for what tells one
/// rank's from another's, where these do not hold the same.
using content = std::uint64_t;

/// One node's memory and daemon. `life` grows when the memory is lost.
struct node {
    struct stored {
        content state = 0;
        content checksum = 0;
    };
    bool up = true, daemon_runs = true, paused = false;
    std::uint64_t life = 1, daemon_life = 1;
    agreement::agreement agreed;
    std::uint64_t look = 0, looked = 0;  ///< at storage: the newest, and that which has ended
    std::optional<time_us> asks_since;   ///< former nodes, and not all have answered
    agreement::ballot bringing;          ///< the newest attempt for which it brings shards
    std::vector<std::uint32_t> members;  ///< by slot, of the launch that this one knows
    std::uint64_t renewed = 0;           ///< the newest launch of which its prolog has run here
    bool has_plan = false;               ///< that has named nodes of earlier runs
    std::map<std::uint32_t, agreement::holding> heard;  ///< of nodes outside, since they were asked
    std::set<std::uint32_t> left;                       ///< of those before, which are to be told so
    std::uint64_t stood_alone = 0;  ///< a launch that did so here, and no newer one had begun
    std::map<shelf::id, stored> memory;
    std::vector<std::function<void()>> held_back;  ///< while paused
};

class machines : public schedule {
  public:
    machines(std::uint64_t seed, const settings& s)
        : schedule(seed), settings_(s), nodes_(s.slots + s.spares) {}

    const std::vector<node>& nodes() const { return nodes_; }
    bool intact(std::uint32_t i, shelf::id id) const {
        const auto at = nodes_[i].memory.find(id);
        return at != nodes_[i].memory.end() && at->second.state == at->second.checksum;
    }
    const shelf::copy* find(std::uint32_t i, shelf::id id) const {
        for (const auto& c : nodes_[i].agreed.copies().copies())
            if (c.number == id) return &c;
        return nullptr;
    }
    std::vector<shelf::copy> own_copies(std::uint32_t i, std::uint32_t rank) const {
        std::vector<shelf::copy> out;
        for (const auto& c : nodes_[i].agreed.copies().copies())
            if (c.own && c.what.rank == rank) out.push_back(c);
        return out;
    }

    /// Ranks that are multiples of a group apart hold the same state; which of the group's it is.
    std::uint32_t state_of(std::uint32_t rank) const { return rank % states(); }
    std::uint32_t states() const { return settings_.group != 0 ? settings_.group : settings_.slots; }

  protected:
    /// What of the content of a rank is its own: any odd factor.
    content own_part(std::uint32_t rank) const { return (state_of(rank) + 1) * 0xd6e8feb86659fd93; }

    template <class... T>
    void say(fmt::format_string<T...> text, T&&... values) {
        if (settings_.trace)
            fmt::print(stderr, "{:>9} {}\n", now(), fmt::format(text, std::forward<T>(values)...));
    }

    bool reaches(std::uint32_t a, std::uint32_t b) const {
        return nodes_[a].up && nodes_[b].up && (a == b || !cut_.contains({std::min(a, b), std::max(a, b)}));
    }
    bool answers(std::uint32_t asks, std::uint32_t node) const {
        return reaches(asks, node) && nodes_[node].daemon_runs && !nodes_[node].paused;
    }
    /// `what` runs at `to`'s daemon, if it is there then.
    void deliver(std::uint32_t from, std::uint32_t to, std::function<void()> what) {
        const int copies = chance(doubled_) ? 2 : 1;
        for (int i = 0; i < copies; ++i) {
            if (from != to && chance(loss_)) continue;
            const auto life = nodes_[to].daemon_life;
            const auto delay =
                from == to ? 1
                           : static_cast<time_us>(chance(0.05) ? uniform(100, 200'000) : uniform(50, 3'000));
            in(delay, [this, from, to, what, life] {
                if (reaches(from, to)) at_daemon(to, life, what);
            });
        }
    }
    void at_daemon(std::uint32_t i, std::uint64_t life, const std::function<void()>& what) {
        auto& n = nodes_[i];
        if (!n.up || !n.daemon_runs || n.daemon_life != life) return;
        if (n.paused)
            n.held_back.push_back([this, i, life, what] { at_daemon(i, life, what); });
        else
            what();
    }
    void go_on(std::uint32_t i) {
        auto& n = nodes_[i];
        n.paused = false;
        for (auto& what : std::exchange(n.held_back, {})) what();
    }
    void restart_node(std::uint32_t i) {
        auto& n = nodes_[i];
        node fresh;
        fresh.life = n.life + 1;
        fresh.daemon_life = n.daemon_life + 1;
        n = std::move(fresh);
    }

    // Memory.
    shelf::id put(std::uint32_t i, const agreement::held& what, bool own, content state, bool checked) {
        shelf::copy c;
        c.number = ++ids_;
        c.what = what;
        c.own = own;
        c.checked = checked;
        nodes_[i].agreed.add(c);
        nodes_[i].memory[c.number] = {state, state};
        return c.number;
    }
    void drop(std::uint32_t i, shelf::id id) {
        nodes_[i].agreed.lose(id);
        nodes_[i].memory.erase(id);
    }
    /// Room for what was chosen: what is newer was not complete.
    void make_buffer(std::uint32_t i, std::uint32_t rank, const copy_key& chosen) {
        auto own = own_copies(i, rank);
        if (own.size() < settings_.buffers) return;
        std::sort(own.begin(), own.end(),
                  [](const auto& a, const auto& b) { return a.what.key > b.what.key; });
        const auto newer =
            std::find_if(own.begin(), own.end(), [&](const auto& c) { return c.what.key > chosen; });
        drop(i, newer != own.end() ? newer->number : own.front().number);
    }
    bool take_guest(std::uint32_t, std::uint32_t to, const agreement::held& what, content state,
                    std::uint64_t generation) {
        auto& n = nodes_[to];
        if (generation < n.agreed.generation()) return false;  // a writer of an older round
        if (const auto* have = n.agreed.copies().find(what, false)) {
            if (intact(to, have->number)) return n.agreed.promised(have->number), true;
            drop(to, have->number);
        }
        std::size_t guests = 0;
        for (const auto& c : n.agreed.copies().copies())
            if (!c.own && c.what.rank == what.rank) ++guests;
        if (guests >= guests_of_a_rank) return false;
        n.agreed.promised(put(to, what, false, state, true));
        return true;
    }

    const settings settings_;
    std::vector<node> nodes_;
    double loss_ = 0, doubled_ = 0;
    std::set<std::pair<std::uint32_t, std::uint32_t>> cut_;  ///< pairs of nodes

  private:
    static constexpr std::size_t guests_of_a_rank = 3;

    std::uint64_t ids_ = 0;
};

}  // namespace banyan::ckpt::simulator
