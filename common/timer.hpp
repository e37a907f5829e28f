// SPDX-License-Identifier: BSD-3-Clause
//
// Asio's timer by banyan's clock. Include only from daemons: Asio is heavy.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>

#include "common/clock.hpp"

namespace banyan {

/// How long the reactor sleeps before it looks at its timers again.
struct clock_wait {
    static clock::duration to_wait_duration(const clock::duration& left) {
        return clock::before_next_look(left);
    }
    static clock::duration to_wait_duration(const clock::time_point& until) {
        return clock::before_next_look(until - clock::now());
    }
};

/// As asio::steady_timer. Not thread-safe.
using timer = boost::asio::basic_waitable_timer<clock, clock_wait>;

}  // namespace banyan
