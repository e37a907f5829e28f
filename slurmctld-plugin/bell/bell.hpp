// SPDX-License-Identifier: GPL-2.0-or-later
//
// A thread that sleeps until it is rung, and then does some work under somebody's locks. Knows no Slurm.
#pragma once

#include <functional>
#include <memory>

namespace banyan::slurm {

class bell {
  public:
    struct work {
        std::function<void()> lock, unlock;
        std::function<bool()>
            look;  ///< under the locks. Whether something is left; an exception leaves nothing
    };

    explicit bell(work does);
    ~bell();
    bell(const bell&) = delete;
    bell& operator=(const bell&) = delete;

    /// Looks as soon as there are the locks, and again while something is left. The first call starts the
    /// thread, with every signal blocked. From any thread, with the locks or without.
    void ring() noexcept;

    /// No look from now on, until it is rung again. Waits for one that is under way, and never for the locks,
    /// which the caller may hold: a thread that waits for them ends when it has them.
    void still() noexcept;

  private:
    struct state;
    std::shared_ptr<state> state_;  // the thread's, too, which may be the last to have it
};

}  // namespace banyan::slurm
