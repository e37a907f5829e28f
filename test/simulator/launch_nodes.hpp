// SPDX-License-Identifier: BSD-3-Clause
//
// The nodes of the launch that is, and those of former ones that may hold what it is to begin from.
#pragma once

#include "test/simulator/machines.hpp"

namespace banyan::ckpt::simulator {

class launch_nodes : public machines {
  protected:
    using machines::machines;

    std::optional<std::uint32_t> slot_of(std::uint32_t node) const;
    /// Of the launch that is; one rank each.
    std::uint32_t slots() const { return static_cast<std::uint32_t>(assignment_.size()); }
    /// Some number of groups for which nodes live, the first slots'. Slots whose nodes live keep them, those
    /// of slots that are no more fill the gaps.
    void choose_groups();
    void replace_dead();
    /// Whether the node knows of the launch that is: an older one's ranks have ended.
    bool is_current(std::uint32_t node) const {
        return first_round(nodes_[node].agreed.generation()) == generation_;
    }
    /// What some member knows of.
    std::set<std::uint32_t> known_former() const;
    /// Some former node is silent, and may still answer.
    bool waits_for_former(std::uint32_t i);
    /// Members have all of the newest step of the newest launch of which the claim `claimed` tells: what the
    /// others hold is not needed, and only what they have begun is to be ended.
    bool newest_is_whole(std::uint32_t i, std::uint64_t claimed) const;
    /// Whom the coordinator asks besides, when all members have said what they hold; null: the round has
    /// begun.
    std::optional<std::set<std::uint32_t>> former_nodes(std::uint32_t i);
    bool all_answer(std::uint32_t asks, const std::set<std::uint32_t>& known) const {
        return std::all_of(known.begin(), known.end(),
                           [&](auto other) { return slot_of(other) || answers(asks, other); });
    }
    agreement::agreement::holdings held_outside(std::uint32_t asks, const std::set<std::uint32_t>& known);

    /// Of the directory: names the launch's nodes and all former ones that are known.
    struct claim {
        std::uint64_t generation = 0;
        std::set<std::uint32_t> nodes;
        void take(std::set<std::uint32_t>& former, const std::vector<std::uint32_t>& launch) {
            former.insert(nodes.begin(), nodes.end());
            nodes = former;
            nodes.insert(launch.begin(), launch.end());
        }
    };
    claim claim_;

    std::uint64_t generation_ = 0;  ///< of the launch
    std::vector<std::uint32_t> assignment_;
    /// Whose memory the launch is to begin from if it can: its nodes, and those that could be asked.
    std::set<std::uint32_t> promised_;
    /// Its nodes, and those that were asked and have answered; not whom an earlier life of the coordinating
    /// daemon asked, when nobody knows of them any more.
    std::set<std::uint32_t> heard_;
    /// Who was silent when it was asked. What it had of earlier launches is not counted on when this one has
    /// begun: it may still go on with its own.
    std::set<std::uint32_t> given_up_;
    /// The same two, of when an earlier life of the coordinating daemon asked in this launch: what all had
    /// accepted then stands, whatever its next life hears.
    struct inquiry {
        std::set<std::uint32_t> promised, given_up;
    };
    std::vector<inquiry> earlier_;
    std::uint64_t asked_by_ = 0;  ///< in this life of its daemon
    /// Nodes of which some member knew that they may hold something, and its own.
    std::set<std::uint32_t> known_of_;
    std::map<std::uint32_t, time_us> silent_since_;  ///< of the former nodes
};

}  // namespace banyan::ckpt::simulator
