// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a step trains: of the first one, how long that took; of each restart, until it does. No Slurm, no
// clock of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "common/clock.hpp"

namespace banyan::supervisor {

class recovery {
  public:
    using clock = banyan::clock;
    using milliseconds = std::chrono::milliseconds;

    /// The first step is about to be asked for; `saved`: the newest training step that is complete.
    recovery(clock::time_point now, std::optional<std::uint64_t> saved)
        : since_(now), last_end_(now), saved_(saved), to_beat_(saved), highest_(saved) {}

    /// Step `ended` is over, with training step `saved` complete, and another is to follow. A restart that
    /// did not come to train is part of the recovery that it belongs to.
    void begin(clock::time_point now, std::string ended, std::optional<std::uint64_t> saved);
    /// srun has its step.
    void has_begun(clock::time_point now);
    /// What is complete now. The line that says so, when a restart trains again. Less than there was: the
    /// newer ones were lost with their nodes, and the step goes on from there.
    std::optional<std::string> look(clock::time_point now, std::optional<std::uint64_t> saved,
                                    const std::string& step);

    bool runs() const { return restarted_ && !trains_; }
    bool trains() const { return trains_; }
    /// Since the step before it ended.
    milliseconds stood(clock::time_point now) const {
        return std::chrono::duration_cast<milliseconds>(now - last_end_);
    }
    /// Whether a step that runs should long have trained: three times as long as the first one took to its
    /// first complete training step, and two minutes at least. Never where that is not known.
    bool is_overdue(clock::time_point now) const;

    /// The training step that a restart must get beyond, or it brought the training no further. One that
    /// begins from an older step need not make up for what was lost, once: a training that dies on the same
    /// way again and again, each time from that older step, gets no further.
    std::optional<std::uint64_t> to_beat() const { return to_beat_; }

    /// One end of a step that brought no training further, for the day when it is given up.
    void note_idle(std::string what);
    void forget_idle() { idle_.clear(); }
    /// The latest of them; empty when there was none.
    std::string idle_ends() const;

  private:
    void fall_back(std::uint64_t to);

    clock::time_point since_, last_end_;
    std::optional<std::uint64_t> saved_;              // of the step that runs, until it trains
    std::optional<std::uint64_t> to_beat_, highest_;  // of all that have ended
    std::optional<std::uint64_t> fell_to_;            // the oldest, since there was none newer than highest_
    std::optional<clock::time_point> began_;
    std::optional<milliseconds> first_took_;
    std::string ended_;
    bool restarted_ = false, trains_ = false;
    std::deque<std::string> idle_;
};

}  // namespace banyan::supervisor
