// SPDX-License-Identifier: BSD-3-Clause
//
// What is done at once where a job may not live on: a rank's process has died, or faultd, or an
// administrator, says that the node is about to fail. What is sealed becomes complete as far as the nodes
// that live hold it together, and the newest complete step goes to storage where the job flushes (`flush` is
// not 0), though it is not its turn. Once for one failure, however many of a job's processes die of it: every
// node asks the leader, who writes a step once.
#pragma once

#include <memory>

#include "ckptd/daemon/flusher.hpp"
#include "ckptd/daemon/protector.hpp"

namespace banyan::ckpt {

class emergencies {
  public:
    emergencies(daemon_core& core, protector& copies, flusher& flushes)
        : core_(core), copies_(copies), flushes_(flushes) {}

    /// The rank's newest process, until another takes its place.
    void watch(const session_ptr& s, std::uint32_t rank);
    /// Answers as protector::seal_now; storage is not waited for.
    task<answer_meta> seal_now(json meta);

  private:
    task<void> on_end(session_ptr s, std::uint32_t rank, std::shared_ptr<const process> who);
    /// One at a time for each job; what asks meanwhile is answered by another turn of it.
    task<void> save(session_ptr s);
    task<void> store(session_ptr s);

    daemon_core& core_;
    protector& copies_;
    flusher& flushes_;
};

}  // namespace banyan::ckpt
