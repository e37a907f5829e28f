// SPDX-License-Identifier: BSD-3-Clause
//
// A save that goes on beside the program: one thread copies, without Python's lock.
#pragma once

#include <cstdint>
#include <thread>

#include <sys/types.h>

#include "native/library.hpp"
#include "native/regions.hpp"

namespace banyan::python {

/// The memory of `what` must not change, and the list must stay, until wait() has returned.
class pending {
  public:
    /// `stream`: the GPU's stream on which the memory was written last, 0 where none of it is a GPU's. Call
    /// it, and wait(), without Python's lock.
    pending(std::uint64_t step, const regions& what, std::uintptr_t stream);
    ~pending();
    pending(const pending&) = delete;
    pending& operator=(const pending&) = delete;

    /// What is known at once; a code other than 0 ends it.
    const answer& begun() const { return begun_; }
    /// Until the step is sealed, or known not to be; from one thread at a time.
    answer wait();

  private:
    answer begun_, end_;
    bool is_open_ = false;  ///< the library copies, and was not asked how it went
    pid_t process_;
    std::thread thread_;  ///< copies, where the library cannot do so itself
};

}  // namespace banyan::python
