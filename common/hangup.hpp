// SPDX-License-Identifier: BSD-3-Clause
//
// SIGHUP for daemons: the log file is opened anew under its name, as logrotate wants it; nothing else
// changes.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

namespace banyan {

/// From the first line of main on: a hangup that comes before the log is there must not end the daemon.
void ignore_hangup();

/// While this lives, `io`'s thread calls reopen_log() at each SIGHUP; without a log file it does nothing.
class hangup {
  public:
    explicit hangup(boost::asio::io_context& io);

  private:
    void wait();
    boost::asio::signal_set signals_;
};

}  // namespace banyan
