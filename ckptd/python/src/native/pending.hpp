// SPDX-License-Identifier: BSD-3-Clause
//
// A save that goes on beside the program: one thread copies, without Python's lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "native/library.hpp"
#include "native/regions.hpp"

namespace banyan::python {

/// The memory of `what` must not change, and the list must stay, until wait() has returned.
class pending {
  public:
    pending(std::uint64_t step, const regions& what);
    ~pending();
    pending(const pending&) = delete;
    pending& operator=(const pending&) = delete;

    /// Until the step is sealed, or known not to be. Call it without Python's lock, from one thread at a
    /// time.
    answer wait();
    bool done() const { return done_.load(); }

  private:
    std::atomic<bool> done_{false};
    answer answer_;
    std::thread thread_;
};

}  // namespace banyan::python
