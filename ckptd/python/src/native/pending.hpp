// SPDX-License-Identifier: BSD-3-Clause
//
// A save that goes on beside the program: bck_checkpoint_begin, and its end.
#pragma once

#include <cstdint>

#include <sys/types.h>

#include "native/library.hpp"
#include "native/regions.hpp"

namespace banyan::python {

/// The memory of `what` must not change until end() has returned.
class pending {
  public:
    /// `stream`: the GPU's stream on which the memory was written last, 0 where none of it is a GPU's. Call
    /// it, and end(), without Python's lock.
    pending(std::uint64_t step, const regions& what, std::uintptr_t stream);
    ~pending();
    pending(const pending&) = delete;
    pending& operator=(const pending&) = delete;

    /// What is known at once; a code other than 0 ends it.
    const answer& begun() const { return begun_; }
    /// Waits until the step is sealed, or known not to be; from one thread at a time.
    answer end();

  private:
    answer begun_, ended_;
    bool is_open_ = false;
    pid_t process_;
};

}  // namespace banyan::python
