// SPDX-License-Identifier: BSD-3-Clause
//
// Drives the rules of ckptd/agreement for one job on this node: carries their messages to the other daemons,
// repeats them, and has their orders carried out. Not thread-safe: on the daemon's io_context.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "ckptd/agreement/agreement.hpp"
#include "ckptd/net/async.hpp"

namespace banyan::ckpt {

class job_agreement : public std::enable_shared_from_this<job_agreement> {
  public:
    using messages = std::vector<agreement::message>;

    /// What the daemon does for it. None of them waits.
    struct host {
        std::function<void(task<void>)> spawn;
        /// All of `what` in one frame. An error when the daemon of that slot did not answer, or has no
        /// session of the job (not_found).
        std::function<task<result<void>>(std::uint32_t slot, messages what)> send;
        /// As send, but nobody waits for an answer: what has left may not arrive. For words that the ticks
        /// say again.
        std::function<task<result<void>>(std::uint32_t slot, messages what)> tell;
        /// Until the node's other ranks have voted for this checkpoint, too, or for a moment: one frame then
        /// has all their votes.
        std::function<task<void>(copy_key)> gather;
        std::function<void()> keep;  ///< what must be remembered, before anything else is done
        std::function<void(agreement::prepare)> bring;
        std::function<void()> begin;   ///< the ranks may begin with rules().begun_from()
        std::function<void()> fenced;  ///< another generation: processes of an older one save no more
        std::function<void(agreement::shelf::id)> free;
        std::function<void()> forgot;   ///< rules().earlier() names nobody any more
        std::function<void()> changed;  ///< after each event but votes that decide nothing
    };

    explicit job_agreement(host h) : host_(std::move(h)) {}

    const agreement::agreement& rules() const { return rules_; }
    /// A node of which nothing is heard, and without which nothing can begin: of all the one that has been
    /// silent for longest, as far as slot 0's daemon is asked, else slot 0.
    struct silence {
        std::uint32_t slot = 0;
        clock::time_point since;
        error why;
    };
    std::optional<silence> missing() const;
    /// Where the votes go: the first slot whose daemon answers.
    std::uint32_t leader() const;

    void open(const agreement::launch& l);
    /// In place of open(): the daemon was started again with what it had kept.
    void recall(agreement::agreement kept, std::uint64_t nonce);
    void receive(std::uint32_t from, const messages& what);
    void tick();
    /// Without `committed` storage holds what it held.
    void there_is(std::optional<std::vector<copy_key>> committed,
                  std::optional<agreement::word_outside> outside) {
        act(committed ? rules_.storage_holds(std::move(*committed), std::move(outside))
                      : rules_.outside_holds(std::move(outside)));
    }
    /// Who may hold what the next launch needs; what changes there is kept with the session.
    agreement::earlier_nodes& earlier() { return rules_.earlier(); }
    void brought(const agreement::ballot& number, std::vector<std::uint32_t> failed);
    /// As agreement's; it is kept when this returns.
    void end_launch(std::uint64_t later) {
        if (rules_.end_launch(later)) host_.keep();
    }
    void begin_again() { act(rules_.begin_again()); }
    void safe(agreement::shelf::id number, agreement::level safety) { act(rules_.safe(number, safety)); }

    void stored(const copy_key& key, std::size_t kept) { rules_.stored(key, kept); }
    void add(const agreement::shelf::copy& c) { rules_.add(c); }
    void lose(agreement::shelf::id number) { rules_.lose(number); }
    void checked(agreement::shelf::id number) { rules_.checked(number); }
    void promised(agreement::shelf::id number) { rules_.promised(number); }
    void skipped(std::uint32_t rank, std::uint64_t step) { rules_.skipped(rank, step); }

  private:
    struct outbox {
        messages waiting{};
        bool sending = false;
        bool asks = true;                 ///< what goes next has to be answered
        std::optional<silence> silent{};  ///< the last frame was not answered
    };
    struct event {
        agreement::effects what;
        bool repeats = false;  ///< of a tick: not needed where a frame was under way before
    };

    void act(agreement::effects what, bool repeats = false);
    void act_on_all();
    void carry_out(event e);
    void post(std::uint32_t slot, agreement::message m, bool asks = true);
    task<void> pump(std::uint32_t slot, std::uint64_t launch);

    host host_;
    agreement::agreement rules_;
    std::uint32_t self_ = 0;
    std::uint64_t launch_ = 0;
    std::uint64_t round_ = 0;
    clock::time_point round_since_{};
    std::vector<outbox> outboxes_;  ///< by slot
    std::deque<event> events_;
    bool acting_ = false;
};

}  // namespace banyan::ckpt
