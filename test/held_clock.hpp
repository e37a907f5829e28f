// SPDX-License-Identifier: BSD-3-Clause
//
// Time that stands still until a test moves it: this process's, and that of the programs which it starts with
// BANYAN_CLOCK=path().
#pragma once

#include <string>

#include "common/clock.hpp"

namespace banyan::testing {

/// One at a time in a process. Time begins at the kernel's. Thread-safe.
class held_clock {
  public:
    /// The file that other processes follow; gone with this object.
    explicit held_clock(std::string path);
    ~held_clock();
    held_clock(const held_clock&) = delete;

    void advance(clock::duration by) { *time_ += by.count(); }
    const std::string& path() const { return path_; }

  private:
    std::string path_;
    clock::held* time_;
};

}  // namespace banyan::testing
