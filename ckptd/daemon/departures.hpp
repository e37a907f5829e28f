// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes that a job has left behind: lost, and back since, or given up by a requeue. Slurm runs no epilog for
// the job there, so nobody tells their daemons that it is gone; they would keep its memory for good. Daemons
// of the launch that runs ask each what it holds, and tell it to let go once none of that is needed any more.
#pragma once

#include <set>
#include <string>

#include "ckptd/daemon/former_nodes.hpp"
#include "ckptd/daemon/launches.hpp"

namespace banyan::ckpt {

class departures {
  public:
    departures(daemon_core& core, messenger& peers, former_nodes& former, launches& starts)
        : core_(core), peers_(peers), former_(former), starts_(starts) {}

    /// Tells those that are due; again after a while whoever has not answered. And where the job has left
    /// this node without a word, its lease begins. Called now and then.
    void watch(const session_ptr& s);

    /// To a node that `left` this job's launch: from here on its memory is under the lease, as that of a job
    /// that has ended. conflict: it has a part in that launch, or in a later run of the job that has not
    /// launched yet, or a later launch than that has asked what is held here. unavailable: a rank of the job
    /// lives here.
    result<void> on_leave(const session_ptr& s, std::uint64_t generation);

  private:
    void watch_silence(const session_ptr& s);
    /// The memory is under the lease from here on.
    void begin_lease(const session_ptr& s);
    task<void> tell_all(session_ptr s, std::uint64_t generation);
    task<void> tell(session_ptr s, session_node node);
    /// Asks it once what it holds. Of states that this launch does not know it is to know.
    task<result<void>> ask(session_ptr s, session_node node);

    daemon_core& core_;
    messenger& peers_;
    former_nodes& former_;
    launches& starts_;
};

}  // namespace banyan::ckpt
