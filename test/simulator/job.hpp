// SPDX-License-Identifier: BSD-3-Clause
//
// The job: its launches, what its daemons do when the agreement says so, its ranks that train and save.
#pragma once

#include "test/simulator/books.hpp"

namespace banyan::ckpt::simulator {

using agreement::effects;
using agreement::prepare;

struct rank_process {
    enum class doing : std::uint8_t { dead, waits, trains } now = doing::dead;
    std::uint64_t generation = 0;
    std::uint64_t step = 0;
    content state = 0;
    bool off = false;          ///< its daemon has lost its memory
    std::uint64_t number = 0;  ///< of the process
};

class job : public machines {
  public:
    job(std::uint64_t seed, const settings& s);

  protected:
    std::optional<std::uint32_t> slot_of(std::uint32_t node) const;
    std::uint32_t buddy(std::uint32_t slot) const;
    void start_launch();
    /// slurmstepd tells its node's daemon, and waits until that is there.
    void tell_launch(std::uint32_t slot, std::uint64_t generation, bool forgetful);
    void open(std::uint32_t i, std::uint32_t slot, bool forgetful);
    void look_at_storage(std::uint32_t i);
    /// Some slots go to other nodes, though theirs live.
    void move_on();
    /// Whom the coordinator asks besides, when all members have said what they hold; null: nobody is asked.
    std::optional<std::set<std::uint32_t>> former_nodes(std::uint32_t i);
    std::vector<std::vector<agreement::held>> held_outside(std::uint32_t asks,
                                                           const std::set<std::uint32_t>& known);
    void start_process(std::uint32_t slot);
    void relaunch();
    void act(std::uint32_t i, const effects& e);
    /// An old process of this launch is told that a newer round has begun: its launcher starts it anew.
    void fence(std::uint32_t slot);
    void bring(std::uint32_t i, const prepare& p);
    void bring_now(std::uint32_t i, std::uint32_t slot, const prepare& p, std::size_t at);
    void go(std::uint32_t i);
    void begin(std::uint32_t slot, std::uint64_t generation, const std::optional<copy_key>& key);
    void train(std::uint32_t slot);
    void finish_step(std::uint32_t slot);
    /// Waits for a buffer, but not for ever.
    void save(std::uint32_t slot, int tries);
    void check_copy(std::uint32_t i, std::uint32_t slot, shelf::id id);
    /// To the buddy; then the vote, with or without.
    void replicate(std::uint32_t i, std::uint32_t slot, shelf::id id, int tries);
    void acknowledge(std::uint32_t i);
    /// A process that waits though its round has gone (it was fenced before) asks again.
    void restart_forgotten(std::uint32_t i);

    std::uint64_t generation_ = 0;  ///< of the launch
    std::vector<std::uint32_t> assignment_;
    std::vector<std::uint32_t>
        outside_;  ///< nodes that the launch's coordinator has asked, and that answered
    /// Whose memory the launch is to begin from if it can: its nodes, and those that could be asked.
    std::set<std::uint32_t> promised_;
    std::map<std::uint32_t, time_us> silent_since_;  ///< of the former nodes
    std::vector<rank_process> ranks_;
    books books_;
    outcome out_;

  private:
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
    std::uint32_t launches_ = 0;
    std::uint64_t processes_ = 0;
    std::set<std::uint32_t> arrived_;                         ///< ranks at the end of their step
    std::map<std::uint64_t, std::optional<copy_key>> begun_;  ///< by round
};

}  // namespace banyan::ckpt::simulator
