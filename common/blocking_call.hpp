// SPDX-License-Identifier: BSD-3-Clause
//
// Calls on other threads that an io_context waits for: a test that holds the time lets none pass meanwhile.
#pragma once

#include <atomic>

namespace banyan {

/// One such call, from when it was asked for until what came of it has been heard.
class blocking_call {
  public:
    blocking_call() { ++outstanding; }
    blocking_call(const blocking_call&) = delete;
    blocking_call& operator=(const blocking_call&) = delete;
    ~blocking_call() { --outstanding; }

    static inline std::atomic<int> outstanding{0};
};

}  // namespace banyan
