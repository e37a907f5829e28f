// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks that hang. Once those of its own node stand for long the leader asks the others where theirs stand,
// names the ranks that keep all the others waiting (standing.hpp), and tells every node of the job, for
// whoever asks there. Where one node does not answer nobody is named: one of its ranks may be at work.
#pragma once

#include <vector>

#include "ckptd/daemon/messenger.hpp"

namespace banyan::ckpt {

class hang_watch {
  public:
    hang_watch(daemon_core& core, messenger& peers) : core_(core), peers_(peers) {}

    /// To be called at each tick, of a job's own session.
    void watch(const session_ptr& s);
    /// To the leader: where this node's ranks stand.
    static json tell_standings(const session& s);
    /// From the leader: who hangs.
    static answer_meta on_hung(session& s, const json& meta);

  private:
    task<void> look(session_ptr s, std::vector<standing> all);
    void found(const session_ptr& s, const hang& what);

    daemon_core& core_;
    messenger& peers_;
};

}  // namespace banyan::ckpt
