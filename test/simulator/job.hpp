// SPDX-License-Identifier: BSD-3-Clause
//
// The job: its launches, what its daemons do when the agreement says so, its ranks that train and save.
#pragma once

#include "test/simulator/launch_nodes.hpp"

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

class job : public launch_nodes {
  public:
    job(std::uint64_t seed, const settings& s);

  protected:
    void start_launch();
    /// slurmstepd tells its node's daemon, and waits until that is there.
    void tell_launch(std::uint32_t slot, std::uint64_t generation, bool forgetful);
    void open(std::uint32_t i, std::uint32_t slot, bool forgetful);
    /// The prolog of the launch that is, on one of its nodes, or what a step does in its place, which has no
    /// plan. The launch before may run there still.
    void renew(std::uint32_t i, bool is_prolog);
    void look_at_storage(std::uint32_t i);
    /// Some slots go to other nodes, though theirs live.
    void move_on();
    /// What a daemon finds out counts though its launch is over: it frees what that overtakes. When a newer
    /// one has begun it is known to nobody any more.
    bool is_news(std::uint32_t node) const {
        return begun_.empty() ||
               first_round(begun_.rbegin()->first) <= first_round(nodes_[node].agreed.generation());
    }
    void start_process(std::uint32_t slot);
    void relaunch();
    void act(std::uint32_t i, const effects& e);
    /// An old process of this launch is told that a newer round has begun: its launcher starts it anew.
    void fence(std::uint32_t slot);
    void bring(std::uint32_t i, const prepare& p);
    /// From the holder number `at` on; `silent`: one before it has not answered.
    void bring_now(std::uint32_t i, std::uint32_t slot, const prepare& p, std::size_t at,
                   bool silent = false);
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
    bool copies_are_anew(const std::optional<copy_key>& key) const;
    /// Nodes of former launches that they are needed no more.
    void tell_departed(std::uint32_t i);
    void let_go(std::uint32_t teller, std::uint32_t i, std::uint64_t generation, bool alone);

    std::vector<rank_process> ranks_;
    books books_;
    outcome out_;

  private:
    std::uint32_t launches_ = 0;
    std::uint64_t processes_ = 0;
    std::set<std::uint32_t> arrived_;                         ///< ranks at the end of their step
    std::map<std::uint64_t, std::optional<copy_key>> begun_;  ///< by round
};

}  // namespace banyan::ckpt::simulator
