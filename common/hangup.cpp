// SPDX-License-Identifier: BSD-3-Clause
#include "common/hangup.hpp"

#include <csignal>

#include "common/log_file.hpp"

namespace banyan {

void ignore_hangup() { std::signal(SIGHUP, SIG_IGN); }

hangup::hangup(boost::asio::io_context& io) : signals_(io, SIGHUP) { wait(); }

void hangup::wait() {
    signals_.async_wait([this](const boost::system::error_code& ec, int) {
        if (ec) return;
        reopen_log();
        wait();
    });
}

}  // namespace banyan
