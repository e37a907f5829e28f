// SPDX-License-Identifier: BSD-3-Clause
//
// Asks from time to time whether the subnet manager still answers, and at once when its log says that it ends
// or changed its state. While nobody answers, it has the fabric looked at: then no log tells of changes.
#pragma once

#include <functional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "common/log.hpp"
#include "common/timer.hpp"
#include "common/wire_async.hpp"
#include "fault/config.hpp"
#include "fault/fabric/manager.hpp"

namespace banyan::fault {

class manager_watch {
  public:
    using report = std::function<void(const manager_news& news)>;
    /// Whether the fabric can be seen from here.
    using looker = std::function<task<bool>()>;

    manager_watch(asio::io_context& io, asio::thread_pool& pool, const config& settings, looker look,
                  report to);
    void start();
    /// The manager's log told of it: ask now.
    void ask_soon();

  private:
    task<void> run();
    task<void> ask();
    task<void> after_silence();

    asio::io_context& io_;
    asio::thread_pool& pool_;
    config config_;
    looker look_;
    report report_;
    manager_memory memory_;
    timer wake_;
    clock::time_point looked_at_{};
    bool hinted_ = false, blind_ = false;
    log_limiter quiet_;
};

}  // namespace banyan::fault
