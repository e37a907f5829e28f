// SPDX-License-Identifier: BSD-3-Clause
//
// From a sealed buffer to a vote: checksum, copy to the buddy. What follows from the votes is the
// agreement's (launches.cpp).
#pragma once

#include "ckptd/daemon/reporter.hpp"

namespace banyan::ckpt {

class protector {
  public:
    protector(daemon_core& core, messenger& peers, reporter& users)
        : core_(core), peers_(peers), users_(users) {}

    /// A process says that it has sealed this buffer; what the buffer says is looked at.
    void note_sealed(const session_ptr& s, std::uint32_t rank, std::size_t buffer);
    /// The same for all its buffers, in the order of their steps.
    void scan_buffers(const session_ptr& s, std::uint32_t rank);
    /// A copy whose buffer was sealed: its checksum, then protect(). `s->pending` and `s->in_checksum` count
    /// it already.
    task<void> secure(session_ptr s, copy_ptr c, std::size_t buffer);
    /// Offers the copy to the buddy, and says how safe it has become.
    task<void> protect(session_ptr s, copy_ptr c);
    /// Waits until what is sealed here is complete, or as complete as the others make it: what every rank has
    /// sealed is within milliseconds, and what one rank never seals is not waited for long.
    task<void> settle(session_ptr s, clock::time_point until);
    /// What lies sealed in this node's memory is complete, or as complete as the others make it, when this
    /// answers: the newest complete step of each job, or of "job".
    task<answer_meta> seal_now(json meta);

  private:
    task<bool> checksum(session_ptr s, copy_ptr c);
    task<bool> replicate(session_ptr s, copy_ptr c);
    /// Null where there is no other node for copies.
    std::shared_ptr<link> link_to_buddy(const session& s);
    /// Tells the ranks when the copy waits for other nodes longer than is usual.
    task<void> watch(session_ptr s, copy_ptr c);

    daemon_core& core_;
    messenger& peers_;
    reporter& users_;
};

}  // namespace banyan::ckpt
