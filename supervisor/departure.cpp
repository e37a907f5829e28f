// SPDX-License-Identifier: BSD-3-Clause
#include "supervisor/departure.hpp"

#include <algorithm>
#include <utility>

#include "supervisor/decision.hpp"

namespace banyan::supervisor {
namespace {

using std::chrono::seconds;

// Each pause is a quarter of the step's age, within these.
constexpr seconds least_pause{2}, longest_pause_to_look{30};
// Slurm has killed the step, and its processes take their time.
constexpr seconds dying{5};
// The launch is long over. The former is more than the longest pause, so that one look at least comes behind
// the launch.
constexpr seconds after_it_trains{60}, at_most{600};

}  // namespace

departure::departure(clock::time_point began, std::vector<std::string> nodes)
    : step_(std::move(nodes)),
      began_(began),
      next_(began + least_pause),
      until_(began + at_most),
      over_(step_.empty()) {}

void departure::trains(clock::time_point now) { until_ = std::min(until_, now + after_it_trains); }

std::vector<std::string> departure::look(clock::time_point now,
                                         const std::optional<std::vector<std::string>>& allocation,
                                         std::optional<std::uint64_t> saved) {
    if (over_) return {};
    // A job that runs has a node: an answer without one was not understood.
    if (!allocation || allocation->empty()) {
        next_ = now + longest_pause_to_look;
        return {};
    }
    const auto lost = lost_nodes(step_, *allocation);
    std::erase_if(gone_, [&](const auto& node) { return std::ranges::find(lost, node) == lost.end(); });
    if (gone_.empty()) {
        gone_ = lost;
        since_ = now;
        saved_.reset();
    }
    next_ = now + std::clamp<clock::duration>((now - began_) / 4, least_pause, longest_pause_to_look);
    if (gone_.empty()) {
        over_ = now >= until_;
        return {};
    }
    if (now - since_ < dying)
        next_ = since_ + dying;
    else if (!saved_)
        saved_ = saved;
    else if (saved > saved_)
        return gone_;
    return {};
}

}  // namespace banyan::supervisor
