// SPDX-License-Identifier: BSD-3-Clause
//
// The copy of one save, on a thread of its own while the process trains on. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "ckptd/client/outcome.hpp"

namespace banyan::ckpt {

class background {
  public:
    background() = default;
    ~background() { cancel(); }
    background(const background&) = delete;

    void start(std::function<outcome()> work);
    bool is_under_way() const { return under_way_ != nullptr; }
    /// Until the work is done: what came of it. Precondition: is_under_way().
    outcome wait();
    /// The same, but that nobody asks. In a child of fork() there is nothing to wait for.
    void cancel();

  private:
    struct work {
        std::thread thread;
        outcome done;
    };
    std::unique_ptr<work> under_way_;
    int by_ = 0;  ///< the process that started it
};

}  // namespace banyan::ckpt
