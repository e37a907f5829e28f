// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes that a job has left behind: lost, and back since, or given up by a requeue. Slurm runs no epilog for
// the job there, so nobody tells their daemons that it is gone; they would keep its memory for good. Daemons
// of the launch that runs tell them, once what they hold is needed no more.
#pragma once

#include <string>

#include "ckptd/daemon/messenger.hpp"

namespace banyan::ckpt {

class departures {
  public:
    departures(daemon_core& core, messenger& peers) : core_(core), peers_(peers) {}

    /// Tells those that are due; again after a while whoever has not answered. Called now and then.
    void watch(const session_ptr& s);

    /// To a node that `left` this job's launch: from here on its memory is under the lease, as that of a job
    /// that has ended. conflict: it has a part in that launch, or a rank of the job lives here.
    result<void> on_leave(const session_ptr& s, std::uint64_t generation);

  private:
    task<void> tell(session_ptr s, std::uint64_t generation);

    daemon_core& core_;
    messenger& peers_;
};

}  // namespace banyan::ckpt
