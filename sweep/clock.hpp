// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the kernel's clock is synchronised, by adjtimex(2).
#pragma once

#include <chrono>

#include "sweep/finding.hpp"

namespace banyan::sweep {

struct clock_view {
    bool synchronised = false;
    std::chrono::microseconds estimated_error{}, greatest_error{};
};

finding judge_clock(const clock_view& v, std::chrono::milliseconds limit);
result<clock_view> look_at_clock();

}  // namespace banyan::sweep
