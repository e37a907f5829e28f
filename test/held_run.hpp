// SPDX-License-Identifier: BSD-3-Clause
//
// Held time that passes only while there is nothing else to do: a test takes as long as what its daemons do,
// and says the same however busy the machine is.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include <boost/asio/io_context.hpp>

#include "test/held_clock.hpp"

namespace banyan::testing {

/// All of a process share one held time.
class held_run {
  public:
    /// `on_its_way`: how long, of the kernel's time, to wait for what another socket or process of this
    /// machine may have sent, before time passes.
    explicit held_run(std::chrono::milliseconds on_its_way = {});

    /// Runs `io`, and lets time pass, until `so`. False: not within ten minutes of that time, or it takes a
    /// minute of the kernel's, as only what is broken does.
    bool until(boost::asio::io_context& io, const std::function<bool()>& so);
    /// Lets just that much time pass; what is to happen in it has happened.
    void pass(boost::asio::io_context& io, clock::duration time);

  private:
    bool run(boost::asio::io_context& io, const std::function<bool()>& so, clock::duration most);
    /// False: nothing was ready.
    bool run_one(boost::asio::io_context& io) const;

    std::shared_ptr<held_clock> clock_;
    const std::chrono::milliseconds on_its_way_;
};

/// Holds blocking calls on other threads while it is shut, a minute at most. Time passes meanwhile: they are
/// what the test does. Thread-safe.
class gate {
  public:
    explicit gate(bool shut = true) : shut_(shut) {}
    gate(const gate&) = delete;
    /// Where such a call waits.
    void operator()();
    void shut();
    void open();
    /// Whether one has come, since it was shut.
    bool reached();

  private:
    std::mutex lock_;
    std::condition_variable opened_;
    bool shut_, reached_ = false;
    int waiting_ = 0;
};

}  // namespace banyan::testing
