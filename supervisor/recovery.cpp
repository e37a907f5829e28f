// SPDX-License-Identifier: BSD-3-Clause
#include "supervisor/recovery.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace banyan::supervisor {
namespace {

constexpr std::size_t most_ends = 8;
constexpr std::chrono::minutes least_patience{2};

double in_seconds(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1000; }

}  // namespace

void recovery::begin(clock::time_point now, std::string ended, std::optional<std::uint64_t> saved) {
    look(now, saved, {});
    if (saved > highest_) {
        highest_ = saved;
        fell_to_.reset();
    }
    to_beat_ = std::max(to_beat_, saved);
    if (!runs()) {
        since_ = now;
        ended_ = std::move(ended);
    }
    last_end_ = now;
    restarted_ = true;
    trains_ = false;
    began_.reset();
}

void recovery::has_begun(clock::time_point now) {
    if (!began_) began_ = now;
}

std::optional<std::string> recovery::look(clock::time_point now, std::optional<std::uint64_t> saved,
                                          const std::string& step) {
    if (!saved || saved == saved_) return std::nullopt;
    if (saved < saved_) {
        if (began_) fall_back(*saved);
        return std::nullopt;
    }
    saved_ = saved;
    if (trains_ || !began_) return std::nullopt;
    trains_ = true;
    if (!restarted_) {
        first_took_ = std::chrono::duration_cast<milliseconds>(now - *began_);
        return std::nullopt;
    }
    const auto to_begin = std::chrono::duration_cast<milliseconds>(*began_ - since_);
    return fmt::format(
        "{} trains again: training step {} is complete {:.1f} s after {} ended, {:.1f} s of them "
        "until Slurm gave the step",
        step, *saved, in_seconds(std::chrono::duration_cast<milliseconds>(now - since_)), ended_,
        in_seconds(to_begin));
}

void recovery::fall_back(std::uint64_t to) {
    saved_ = to;
    if (to_beat_ <= to || (fell_to_ && *fell_to_ <= to)) return;
    to_beat_ = fell_to_ = to;
}

bool recovery::is_overdue(clock::time_point now) const {
    if (!runs() || !began_ || !first_took_) return false;
    return now - *began_ > std::max<clock::duration>(least_patience, 3 * *first_took_);
}

void recovery::note_idle(std::string what) {
    idle_.push_back(std::move(what));
    if (idle_.size() > most_ends) idle_.pop_front();
}

std::string recovery::idle_ends() const { return fmt::format("{}", fmt::join(idle_, "; ")); }

}  // namespace banyan::supervisor
