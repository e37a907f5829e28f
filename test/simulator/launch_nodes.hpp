// SPDX-License-Identifier: BSD-3-Clause
//
// The nodes of the launch that is, and those of former ones that may hold what it is to begin from.
#pragma once

#include "test/simulator/books.hpp"

namespace banyan::ckpt::simulator {

inline agreement::node_address address_of(std::uint32_t node) {
    return {std::to_string(node), std::to_string(node)};
}
inline std::uint32_t number_of(const std::string& name) {
    return static_cast<std::uint32_t>(std::stoul(name));
}

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
    /// Whom the coordinator's daemon knows to ask; the members have said what they hold.
    std::set<std::uint32_t> whom_to_ask(std::uint32_t i) const;
    /// Some former node is silent, and may still answer.
    bool waits_for_former(std::uint32_t i);
    /// Whom the coordinator asks besides, when all members have said what they hold; null: the round has
    /// begun.
    std::optional<std::set<std::uint32_t>> former_nodes(std::uint32_t i);
    agreement::word_outside held_outside(std::uint32_t asks, const std::set<std::uint32_t>& known);

    /// Of the directory: names the launch's nodes and all former ones that are known.
    struct claim {
        std::uint64_t generation = 0;
        std::set<std::uint32_t> nodes;
        void take(agreement::earlier_nodes& known, const std::vector<std::uint32_t>& launch) {
            known.note_claim(generation);
            for (const auto i : nodes) known.add(address_of(i));
            for (const auto& [name, addr] : known.nodes()) nodes.insert(number_of(name));
            nodes.insert(launch.begin(), launch.end());
        }
    };
    claim claim_;

    std::uint64_t generation_ = 0;  ///< of the launch
    std::vector<std::uint32_t> assignment_;
    /// Nodes of earlier launches, the newest first, as the plan of the launch that is names them; as many as
    /// its own two times over.
    std::vector<std::uint32_t> plan_;
    /// Whose memory the launch is to begin from if it can: its nodes, and those that could be asked; also who
    /// was silent, for what somebody knew to be replicated.
    books::reach promised_;
    /// Its nodes, and those that were asked and have answered; not whom an earlier life of the coordinating
    /// daemon asked, when nobody knows of them any more.
    std::set<std::uint32_t> heard_;
    /// Who was silent when it was asked. What it had of earlier launches is not counted on when this one has
    /// begun: it may still go on with its own.
    std::set<std::uint32_t> given_up_;
    /// The same two, of when an earlier life of the coordinating daemon asked in this launch: what all had
    /// accepted then stands, whatever its next life hears.
    struct inquiry {
        books::reach promised;
        std::set<std::uint32_t> given_up;
    };
    std::vector<inquiry> earlier_;
    std::uint64_t asked_by_ = 0;  ///< in this life of its daemon
    /// Nodes of which some member knew that they may hold something, and its own.
    std::set<std::uint32_t> known_of_;
};

}  // namespace banyan::ckpt::simulator
