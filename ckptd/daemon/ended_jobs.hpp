// SPDX-License-Identifier: BSD-3-Clause
//
// Jobs that have left this node: their memory stays for a requeued one, as long as nobody else needs it, and
// what storage lacks of their newest step is brought there.
#pragma once

#include <functional>

#include "ckptd/daemon/flusher.hpp"

namespace banyan::ckpt {

class ended_jobs {
  public:
    ended_jobs(daemon_core& core, flusher& flushes) : core_(core), flushes_(flushes) {}

    /// Until what is sealed is complete, and in storage where the job flushes; a minute at most. An error
    /// when the newest complete step has not come there: then memory alone has it.
    task<result<void>> drain(session_ptr s);
    /// Of all states of the job, at once.
    task<result<void>> drain_all(session_ptr job);
    /// The newest complete step of a job that is detached.
    task<void> leave_in_storage(session_ptr s);
    /// For a job that runs and finds no room for `bytes`: gives up the memory of an ended one. Where that
    /// one's newest step is still on its way to storage, waits for it a while. False when there is none, and
    /// when all of them together would not make the room: then nothing is given up.
    task<bool> make_room(std::uint64_t bytes);
    /// For a job that needs one more descriptor. All jobs have half of the process's: where they are taken
    /// ended ones give theirs up, and who has half of that himself is refused when there are none.
    result<void> make_descriptor(const session& s);

  private:
    /// Until what is sealed here is complete, as far as it can become so.
    task<void> settle(session_ptr s, clock::time_point until);
    /// Of the user who has several here and most in them, else of whoever has most.
    enum class scarce { memory, descriptors };
    bool give_up_one(scarce what);
    /// Of all jobs that have left.
    std::uint64_t memory_of_ended() const;

    daemon_core& core_;
    flusher& flushes_;
    std::size_t uncounted_ = 0;  ///< that may be made before they are counted again
};

}  // namespace banyan::ckpt
