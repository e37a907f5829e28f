// SPDX-License-Identifier: BSD-3-Clause
//
// What befalls the job, and what must hold in the end.
#include "test/simulator/world.hpp"

#include <any>
#include <type_traits>

#include "test/simulator/job.hpp"

namespace banyan::ckpt::simulator {
namespace {

using agreement::level;

constexpr time_us tick_every = 20'000, calm = 400'000, user_ends_it_after = 5'000'000,
                  give_up_after = 60'000'000;

class world : public job {
  public:
    using job::job;

    outcome run() {
        try {
            loss_ = chance(0.5) ? 0.0 : uniform(0.0, 0.3);
            doubled_ = uniform(0.0, 0.2);
            start_launch();
            for (std::uint32_t i = 0; i < nodes_.size(); ++i) tick(i);
            for (int faults = settings_.faults; faults > 0; --faults) {
                run_for(between(0, 150'000));
                fault(below(nodes_.size()));
            }
            heal();
            finish();
        } catch (const breach& b) {
            out_.breach = fmt::format("{} (at {} us)", b.text, now());
        }
        out_.events = events();
        return out_;
    }

  private:
    void tick(std::uint32_t i) {
        in(between(tick_every / 2, tick_every * 3 / 2), [=, this] {
            auto& n = nodes_[i];
            // Whoever has left the job does not know it.
            if (n.up && n.daemon_runs && !n.paused && !n.members.empty()) {
                if (chance(0.1)) n.agreed.follow(below(n.members.size()));
                act(i, n.agreed.tick());
                const auto* c = n.agreed.coordinating();
                if (c && c->now() == agreement::coordinator::phase::lost && is_current(i)) relaunch();
                // A process that waits though its round has gone (it was fenced before) asks again.
                const bool waits = is_current(i) && ranks_[n.agreed.slot()].now == rank_process::doing::waits;
                if (waits && n.agreed.has_begun()) act(i, n.agreed.begin_again());
                if (chance(0.2)) tell_departed(i);
            }
            tick(i);
        });
    }

    void fault(std::uint32_t i) {
        ++out_.faults;
        if (settings_.group != 0 && chance(0.2)) {
            say("the number of groups changes");
            return relaunch();
        }
        switch (below(8)) {
            case 0:
                return node_dies(i);
            case 1:
                return daemon_restarts(i);
            case 2:
                return daemon_loses_all(i);
            case 3:
                say("daemon {} is stopped", i);
                nodes_[i].paused = true;
                return in(between(1'000, 300'000), [this, i] { go_on(i); });
            case 4:
                return cut_off(i);
            case 5:
                say("the step ends");
                return relaunch();
            case 6:
                say("the processes are started again");
                for (std::uint32_t slot = 0; slot < slots(); ++slot)
                    if (ranks_[slot].now == rank_process::doing::trains) fence(slot);
                return;
            default:
                return damage(i);
        }
    }
    void node_dies(std::uint32_t i) {
        say("node {} dies", i);
        auto& n = nodes_[i];
        n.up = false;
        n.memory.clear();
        n.agreed = {};
        n.members.clear();
        n.left.clear();
        n.renewed = 0;
        n.has_plan = false;
        ++n.life;
        ++n.daemon_life;
        if (slot_of(i)) relaunch();
        in(between(10'000, 300'000), [this, i] {
            if (!nodes_[i].up) restart_node(i);
        });
    }
    /// What a keeper has kept: the fields, and nothing else.
    static agreement::agreement kept_of(const agreement::agreement& before) {
        std::vector<std::any> kept;
        const auto put = [&](auto& self, const char*, const auto& value) -> void {
            if constexpr (requires { value.fields(value, [](auto&&...) {}); })
                value.fields(value, [&](const char* name, const auto& one) { self(self, name, one); });
            else
                kept.emplace_back(value);
        };
        auto next = kept.begin();
        const auto take = [&](auto& self, const char*, auto& value) -> void {
            if constexpr (requires { value.fields(value, [](auto&&...) {}); })
                value.fields(value, [&](const char* name, auto& one) { self(self, name, one); });
            else
                value = std::any_cast<std::remove_reference_t<decltype(value)>>(*next++);
        };
        put(put, "", before);
        agreement::agreement after;
        next = kept.begin();
        take(take, "", after);
        after.earlier().add_all(before.earlier().nodes());
        return after;
    }
    void daemon_restarts(std::uint32_t i) {
        say("daemon {} is started again", i);
        auto& n = nodes_[i];
        ++n.daemon_life;
        n.daemon_runs = false;
        n.held_back.clear();
        in(between(1'000, 100'000), [this, i] {
            auto& m = nodes_[i];
            m.daemon_runs = true;
            m.paused = false;
            m.agreed = kept_of(m.agreed);
            m.agreed.recall(number());
            if (slot_of(i) == 0u) look_at_storage(i);
            const auto slot = m.agreed.slot();
            for (const auto& c : own_copies(i, slot))  // what was under way begins anew
                if (!c.voted) check_copy(i, slot, c.number);
        });
    }
    void daemon_loses_all(std::uint32_t i) {
        say("daemon {} loses all", i);
        auto& n = nodes_[i];
        ++n.daemon_life;
        ++n.life;
        if (const auto slot = slot_of(i)) ranks_[*slot].off = true;
        n.memory.clear();
        n.agreed = {};
        n.members.clear();
        n.left.clear();
        n.renewed = 0;
        n.has_plan = false;
        n.held_back.clear();
        n.paused = n.daemon_runs = false;
        in(between(1'000, 100'000), [this, i, generation = generation_] {
            nodes_[i].daemon_runs = true;
            const auto slot = slot_of(i);
            if (!slot || generation != generation_) return;
            // Its process trains on without saves, or the launcher starts all anew.
            const bool trains = ranks_[*slot].now == rank_process::doing::trains;
            if (trains && chance(0.5)) return;
            open(i, *slot, true);
            if (trains) fence(*slot);
        });
    }
    void cut_off(std::uint32_t i) {
        say("node {} is cut off", i);
        for (std::uint32_t other = 0; other < nodes_.size(); ++other)
            if (other != i && chance(0.6)) cut_.insert({std::min(i, other), std::max(i, other)});
        in(between(1'000, 400'000), [this] { cut_.clear(); });
    }
    /// A bit of some copy flips.
    void damage(std::uint32_t i) {
        auto& memory = nodes_[i].memory;
        if (memory.empty()) return;
        auto at = memory.begin();
        std::advance(at, below(memory.size()));
        at->second.state ^= 1;
        if (const auto* c = find(i, at->first)) {
            books_.damaged(i, c->what.key);
            say("rank {}'s copy of step {} on node {} is damaged", c->what.rank, c->what.key.step, i);
        }
    }

    void heal() {
        say("healed");
        cut_.clear();
        loss_ = std::min(loss_, 0.1);
        for (std::uint32_t i = 0; i < nodes_.size(); ++i) go_on(i);
    }
    /// Without more faults the job trains again and commits, soon.
    void finish() {
        const auto healed = now();
        bool ended = false;
        while (now() < healed + give_up_after) {
            run_for(10'000);
            const auto newest = books_.newest(slots() > 1 ? level::replicated : level::memory);
            if (newest && first_round(newest->generation) == generation_ && now() > healed + calm) return;
            // Whoever waits for a daemon that has lost its part is ended by its user, once.
            if (now() > healed + user_ends_it_after && !std::exchange(ended, true)) relaunch();
        }
        throw breach{fmt::format("nothing is committed any more in launch {:x}", generation_)};
    }
};

}  // namespace

outcome run(std::uint64_t seed, const settings& s) { return world(seed, s).run(); }

}  // namespace banyan::ckpt::simulator
